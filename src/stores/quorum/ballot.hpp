// One claim at the members of a quorum, without I/O: takes their answers, returns orders.
// Everything that decides whether a majority granted, and with which fence, is here.
//
// Not thread-safe: round feeds it one answer at a time.
//
//   phase    | entered by                       | ends with
//   asking   | start                            | a majority granted -> raising; none possible -> failed
//   raising  | a majority granted               | a majority has the fence -> granted; none possible -> failed
//   granted  | a majority has the fence         | end
//   failed   | no majority, or end              |
//
// Invariants, cited by number in ballot.cpp:
//  Q1  A majority means a majority of all configured members, not of those that answered.
//  Q2  The fence is the greatest of the counted grants, and is reported once a majority of members
//      has stored it in a step that also found the claim to be the holder there.
//  Q3  A member that lost its state recently does not count, nor does one that is listed twice.
//  Q4  What is or may be at a member when the ballot fails is left there, silent members included.
//  Q5  A ballot counts no answer to another ballot's question: each round has one of its own.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::quorum {

constexpr std::size_t majority_of(std::size_t members) noexcept { return members / 2 + 1; }

class ballot {
 public:
  enum class phase : std::uint8_t { asking, raising, granted, failed };

  // What is known about the claim at one member.
  enum class vote_state : std::uint8_t {
    unasked,
    asked,    // no answer yet
    silent,   // no answer will come: the claim may be there
    refused,  // the member said no: it is not there
    low,      // it holds there, with a fence below ours
    held,     // it holds there, with our fence or a greater one
    lost,     // it is not there any more
  };

  struct orders {
    std::vector<std::size_t> raise;              // write fence() there, if it still holds
    std::vector<std::size_t> leave;              // Q4
    std::optional<result<spi::outcome>> settle;  // at most once in a ballot's life
  };

  explicit ballot(std::size_t members);

  // False: the ballot is over, do not ask.
  bool ask(std::size_t member);
  orders answered(std::size_t member, const result<spi::outcome>& answer);
  // If the only missing answers are those of members that were silent before, and these are a
  // minority, they are not waited for: a split round is over at once, instead of blocking everybody
  // else for as long as the silence lasts.
  orders not_waiting_for(const std::vector<bool>& doubtful);
  orders raised(std::size_t member, const result<spi::granted>& answer);
  // The claim is given up, whatever the members say.
  orders end(error why);

  // While granted: a missing member is asked again, with our fence as its proposal. False: nothing
  // is missing at this member. The answer comes to answered(); it counts from the next renewal on.
  bool top_up(std::size_t member);
  // A renewal said that the claim is not there any more.
  void lose(std::size_t member) { vote_states_[member].state = vote_state::lost; }

  [[nodiscard]] phase where() const noexcept { return phase_; }
  [[nodiscard]] vote_state at(std::size_t member) const noexcept {
    return vote_states_[member].state;
  }
  [[nodiscard]] std::size_t members() const noexcept { return vote_states_.size(); }
  [[nodiscard]] fence_token fence() const noexcept { return fence_; }
  // Two members turned out to be one server.
  [[nodiscard]] bool duplicate() const noexcept { return duplicate_; }
  // How many members hold the claim with our fence.
  [[nodiscard]] std::size_t margin() const noexcept;

 private:
  struct vote {
    vote_state state = vote_state::unasked;
    bool unsent = false;   // silent, and was never asked: it is not there
    bool raising = false;  // a raise is under way
    bool raised = false;   // a raise was made
    bool counts = false;
    std::uint64_t fence = 0;
    std::uint64_t server = 0;
    duration ttl{};
  };

  void take_grant(vote& from, const spi::granted& grant);
  void take_refusal(vote& from, const error& why);
  orders decide();
  void choose_fence();
  void raise_low(orders& todo);
  orders report();
  orders fail(result<spi::outcome> verdict);
  [[nodiscard]] result<spi::outcome> verdict() const;
  [[nodiscard]] error outage() const;
  [[nodiscard]] std::size_t needed() const noexcept;
  template <class Condition>
  [[nodiscard]] std::size_t count(Condition condition) const;

  phase phase_ = phase::asking;
  std::vector<vote> vote_states_;
  fence_token fence_;
  // From the members that refused.
  std::size_t blocked_ = 0;
  std::optional<duration> recheck_after_;
  std::string blocker_;
  std::size_t errors_ = 0;
  std::optional<error> error_;
  std::optional<error> silence_;
  bool duplicate_ = false;
  duration youngest_{};  // until every member counts again
  spi::server_time at_{};
};

// Which members have pushed that they revoked a claim. One alone proves nothing: its push may be
// older than a later grant, and a majority may still hold.
//
// Not thread-safe.
class revocation_votes {
 public:
  explicit revocation_votes(std::size_t members) : heard_(members) {}

  // False: it said so before, and nothing has contradicted it since.
  bool raise(std::size_t member, time_point now) {
    if (heard_[member]) return false;
    heard_[member] = now;
    return true;
  }
  // A request that was sent then found the claim and prolonged it.
  void refute(std::size_t member, time_point sent_at) {
    if (heard_[member] && sent_at > *heard_[member]) heard_[member].reset();
  }

  [[nodiscard]] bool any() const noexcept { return count() > 0; }
  // The remaining members are no majority, whatever they say. At least two, where there are two.
  [[nodiscard]] bool decide() const noexcept {
    const std::size_t members = heard_.size();
    const std::size_t minority = members - majority_of(members);
    return count() > minority && count() >= std::min<std::size_t>(2, members);
  }

 private:
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(std::count_if(
        heard_.begin(), heard_.end(), [](const auto& each) { return each.has_value(); }));
  }

  std::vector<std::optional<time_point>> heard_;
};

}  // namespace holdfast::quorum
