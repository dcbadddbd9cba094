// Commands that are not answered yet, and which of them are sent one by one, as they come, or
// wait a little for each other: when many threads use a server nearby, a write for each
// command costs both sides more than the command itself. Attempts and releases that are then
// sent together are one call, `batch`: the server starts a script, reads the clock and reads
// keys once for all of them.
#pragma once

#include "net/patience.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::redis {

struct pending;
using pending_ptr = std::unique_ptr<pending>;
using pending_queue = std::deque<pending_ptr>;  // first in, first out

struct pending {
  // How often it is sent again because the server does not know its script.
  static constexpr std::uint8_t reload_limit = 3;
  // Sent ahead of a command, for it.
  enum class ahead : std::uint8_t { no, library, asking };

  pending() = default;
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  // Called once. Nobody waits for a command that was sent ahead, nor for a
  // batch, only for its members.
  virtual void answer(result<reply>) {}

  net::patience until{};
  command what{};                 // kept until it is answered: it may be sent later, or again
  std::vector<reply> gathered{};  // of a command with several replies
  bool sent = false;              // on some link, perhaps one that is gone
  bool again = false;             // sent after a quiet time: may be sent again
  bool repeated = false;          // was sent again
  std::uint8_t reloads = 0;       // left
  bool asking = false;            // sent after ASKING
  ahead is_ahead = ahead::no;
  const script* runs = nullptr;        // or null
  std::vector<pending_ptr> members{};  // of a batch

  // The number of commands that it counts for.
  [[nodiscard]] std::size_t size() const noexcept { return members.empty() ? 1 : members.size(); }
};

// Together with its completion, in one allocation: these are created by one thread and mostly
// destroyed by another, which is expensive for an allocator.
template <class Done>
struct pending_with final : pending {
  explicit pending_with(Done then) : done(std::move(then)) {}
  void answer(result<reply> given) override { done(std::move(given)); }

  Done done;
};

template <class Done>
[[nodiscard]] pending_ptr make_pending(command what, const net::patience& until, Done done,
                                       bool asking = false) {
  pending_ptr made = std::make_unique<pending_with<Done>>(std::move(done));
  made->until = until;
  made->what = std::move(what);
  made->asking = asking;
  return made;
}

// For a command that script::call() made; sent again if the server does not know the script, which
// must live at least until `done` is called.
template <class Done>
[[nodiscard]] pending_ptr make_call(const script& runs, command made, const net::patience& until,
                                    Done done, bool asking = false) {
  pending_ptr call = make_pending(std::move(made), until, std::move(done), asking);
  call->runs = &runs;
  call->reloads = pending::reload_limit;
  return call;
}

// The queue must not be empty.
[[nodiscard]] inline pending_ptr take_front(pending_queue& from) {
  pending_ptr first = std::move(from.front());
  from.pop_front();
  return first;
}
// Appends all of it to `to`.
inline void move_all(pending_queue& from, pending_queue& to) {
  std::ranges::move(from, std::back_inserter(to));
  from.clear();
}
// Appends the elements for which `which` is true to `to`.
template <class Which>
void move_if(pending_queue& from, pending_queue& to, Which which) {
  const auto those =
      std::ranges::stable_partition(from, [&](const pending_ptr& one) { return !which(*one); });
  std::ranges::move(those, std::back_inserter(to));
  from.erase(those.begin(), those.end());
}

// Decides whether a command should wait for the next answer, which is on its way, and go out
// together with all that came meanwhile. Not thread-safe.
class pacing {
 public:
  struct settings {
    // Fewer are sent at once: a thread that is nearly alone never waits for another's answer.
    std::size_t many = 16;
    // At most this many writes await answers: while the server works on
    // one, the other is under way.
    std::size_t writes = 2;
    // This many are sent although no answer has come: waiting for more gains nothing, and the
    // thread that reads the answers may be slow.
    std::size_t enough = 16;
    // Answers of a server that is further away take too long to wait for.
    duration nearby = std::chrono::microseconds(300);
  };

  explicit pacing(settings how) : how_(how) {}

  // Another link: nothing is under way.
  void restart() noexcept {
    queued_ = answered_ = written_ = 0;
    awaited_ = 0;
    fastest_ = duration::max();
  }
  // `count` commands go out with the next write; as many were answered.
  void queue(std::size_t count) noexcept { queued_ += count; }
  void answer(std::size_t count) noexcept { answered_ += count; }
  [[nodiscard]] std::size_t under_way() const noexcept { return queued_ - answered_; }

  // Whether anything was queued since the last write. If so, it must be written now.
  bool begin_write(time_point now) noexcept {
    if (queued_ == written_) return false;
    written_ = queued_;
    if (awaited_ < writes_.size()) ++awaited_;  // else it counts as part of the last
    writes_[(first_ + awaited_ - 1) % writes_.size()] = {written_, now};
    return true;
  }
  // After answers: the writes that have been answered in full.
  void end_writes(time_point now) noexcept {
    while (awaited_ > 0 && writes_[first_].last <= answered_) {
      // The quickest answer tells how far away the server is, whatever the load is later.
      fastest_ = std::min(fastest_, now - writes_[first_].at);
      first_ = (first_ + 1) % writes_.size();
      --awaited_;
    }
  }

  // A command that is queued now should wait. True only while an answer is pending.
  [[nodiscard]] bool holds_back() const noexcept {
    return awaited_ >= how_.writes && under_way() >= how_.many && fastest_ <= how_.nearby;
  }

 private:
  struct write {
    std::uint64_t last;  // the command
    time_point at;
  };

  const settings how_;
  std::uint64_t queued_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t written_ = 0;
  std::array<write, 16> writes_{};  // writes that are not answered in full: a ring
  std::size_t first_ = 0;           // of them
  std::size_t awaited_ = 0;         // how many
  duration fastest_ = duration::max();
};

// The server does nothing else during a batch: a tenth of a millisecond.
inline constexpr std::size_t batch_limit = 32;

// How many of them, from the first on, are sent as one call; 1: the first is sent alone. The
// queue must not be empty.
[[nodiscard]] std::size_t batch_size(const pending_queue& from);
// Removes this many, as one batch.
[[nodiscard]] pending_ptr take_batch(pending_queue& from, std::size_t count);
// The answer for each member of a batch. nil: nothing was done for it, because other members need
// memory and the server has none left; it must be sent alone.
[[nodiscard]] std::vector<reply> batch_answers(const pending& whole, reply answer);

}  // namespace holdfast::redis
