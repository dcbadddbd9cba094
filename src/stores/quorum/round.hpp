// One claim at all members at once: feeds its ballot and carries out its orders. Every round that
// may have left something behind is followed by one with another id at the members, so that nothing
// late can be taken for an answer of the new one.
//
// Thread-safe; no lock is held while a member or the core is called.
#pragma once

#include "stores/quorum/ballot.hpp"
#include "stores/quorum/quorum_context.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace holdfast::quorum {

class round : public std::enable_shared_from_this<round> {
 public:
  // `claim`: the core's claim; `id`: the one by which the members know it; `holder`: notified when
  // it is gone, may be null.
  round(std::shared_ptr<quorum_context> quorum_context, const spi::claim& claim,
        const spi::claim_id& id, std::shared_ptr<spi::wakeup> holder);

  void start(const spi::op_context& context, spi::completion<spi::outcome> done);
  // For the mutant quorum_earlier_round_counted.
  void inherit(const round& earlier);

  // Completes once a majority answered, or was never asked; the rest continues in the background.
  void leave(const spi::op_context& context, spi::completion<spi::departure> done);
  // What is left of it at the members is removed in the background; nobody waits for that.
  void abandon();
  // The same, but what is left there ends by itself: after a revocation
  // nobody is granted before that.
  void forsake();

  // What a renewal must ask a member for this claim.
  enum class duty : std::uint8_t { nothing, renew, raise };
  [[nodiscard]] duty duty_at(std::size_t member) const;
  void renewing(time_point now);
  // Asks members where the claim is missing, while a majority provably holds it.
  void top_up(const spi::op_context& context);
  void renewed(std::size_t member, time_point sent_at, const spi::renewal& answer);
  void raised(std::size_t member, const result<spi::granted>& answer);
  void proven(time_point sent_at, duration ttl);

  [[nodiscard]] bool granted() const;
  [[nodiscard]] fence_token fence() const;
  // Nothing of it is, or may yet arrive, at a member: its id may be used again.
  [[nodiscard]] bool clean() const;
  // When the last hold at a member has ended by itself.
  [[nodiscard]] time_point over_at() const;
  [[nodiscard]] const spi::claim_ptr& at_members() const noexcept { return copy_; }

 private:
  // Leaving for the core: who has not answered yet, and what the others said.
  struct exit {
    std::vector<std::size_t> remaining;  // may have it still
    std::vector<std::size_t> silent;     // of those, asked without an answer
    std::size_t enough = 0;              // the number of answers that make a verdict
    std::size_t pending = 0;
    std::size_t holders = 0;
    std::size_t gone = 0;
    bool begun = false;
    bool forsaken = false;  // it was revoked
    bool answered = false;  // the core was answered that it is left
    spi::completion<spi::departure> done;
  };

  class vote_listener;

  void answered(std::size_t member, time_point sent_at, const result<spi::outcome>& answer);
  void objected(std::size_t member, const error& why);
  void heed();
  void ask(std::size_t member, const spi::claim_ptr& claim, time_point deadline);
  void carry_out(ballot::orders todo);
  void hurry(ballot::orders& todo);  // under mutex_
  void send_raise(std::size_t member);
  void withdraw(std::size_t member, bool certain);
  void withdrawn(std::size_t member, bool certain, const result<spi::departure>& answer);
  void send_leave(std::size_t member, bool unanswered, time_point deadline);
  void left(std::size_t member, const result<spi::departure>& answer);
  void background(const std::vector<std::size_t>& members);
  [[nodiscard]] std::optional<spi::departure> exit_verdict() const;  // under mutex_
  [[nodiscard]] time_point end_of_all() const;                       // under mutex_
  [[nodiscard]] bool sits_at(std::size_t member) const;              // under mutex_

  const std::shared_ptr<quorum_context> context_;
  const spi::claim_ptr copy_;
  const std::shared_ptr<spi::wakeup> holder_;
  time_point deadline_{};

  mutable std::mutex mutex_;
  ballot ballot_;                                // guarded by mutex_
  quorum::revocation_votes revocation_votes_;    // guarded by mutex_
  error objection_;                              // guarded by mutex_: the last one
  bool looking_ = false;                         // guarded by mutex_
  bool look_again_ = false;                      // guarded by mutex_
  spi::completion<spi::outcome> done_;           // guarded by mutex_
  std::optional<result<spi::outcome>> verdict_;  // guarded by mutex_: waits for awaited_
  std::size_t awaited_ = 0;                      // guarded by mutex_: leaves of a failed round
  bool clean_ = true;                            // guarded by mutex_
  time_point last_sent_{};                       // guarded by mutex_
  time_point valid_until_{};                     // guarded by mutex_
  exit exit_;                                    // guarded by mutex_
  std::vector<std::pair<std::size_t, spi::outcome>> late_;  // guarded by mutex_; for the mutant
};

// One batch of renewals at all members: a claim is renewed when a majority of the
// configured members prolonged it, lost when so many say that they do not have it that
// a majority is impossible, held (revoked) when so many no longer prolong it.
//
// Thread-safe; lives until the last member has answered.
class renewal_round : public std::enable_shared_from_this<renewal_round> {
 public:
  using answers = std::vector<spi::renewal>;

  // `claims`: null where the quorum does not know the claim, which is then lost.
  renewal_round(std::shared_ptr<quorum_context> quorum_context,
                std::vector<std::shared_ptr<round>> claims, spi::function<void(answers)> done);

  void start(const spi::op_context& context);

 private:
  struct tally {
    std::size_t renewed = 0;
    std::size_t held = 0;  // and not prolonged
    std::size_t no = 0;
    duration renewed_ttl = forever;  // the smallest
    duration held_ttl = forever;
    spi::renewal verdict;
    bool decided = false;
  };

  void ask(std::size_t member, const spi::op_context& context);
  void answered(std::size_t member, const std::vector<std::size_t>& which,
                const result<answers>& answer);
  void raised(std::size_t member, std::size_t which, const result<spi::granted>& answer);
  void count(std::size_t which, const spi::renewal& answer);  // under mutex_
  void decide(std::size_t which);                             // under mutex_, if undecided
  void one_less();

  const std::shared_ptr<quorum_context> context_;
  const std::vector<std::shared_ptr<round>> claims_;
  time_point sent_at_{};

  std::mutex mutex_;
  std::vector<tally> tallies_;         // guarded by mutex_
  std::size_t undecided_ = 0;          // guarded by mutex_
  std::size_t pending_ = 1;            // guarded by mutex_; one for start()
  spi::function<void(answers)> done_;  // guarded by mutex_
};

}  // namespace holdfast::quorum
