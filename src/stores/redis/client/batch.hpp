// Commands that are not answered yet. Which of them go out one by one, as they come, and which wait a little for each
// other: with many threads at work on a server nearby, a write for each command costs both sides more than the command
// itself. Attempts and releases that then go out together are one call, `batch`: the server begins a script, asks for the
// time and reads once for all of them.
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
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::redis {

struct pending {
  // How often it goes once more because the server does not know its script.
  static constexpr std::uint8_t reload_limit = 3;
  // Sent ahead of a command, for it. Nobody waits for the answer.
  enum class ahead : std::uint8_t { no, library, asking };

  spi::completion<reply> done{};
  net::patience until{};
  std::uint32_t replies = 1;      // still to come
  std::vector<reply> gathered{};  // of a command with several
  std::optional<command> kept{};  // where it may be sent later, or once more
  bool sent = false;              // on some link, perhaps one that is gone
  bool again = false;             // sent after a quiet time: may be sent once more
  std::uint8_t reloads = 0;       // left
  bool asking = false;            // goes behind ASKING
  ahead is_ahead = ahead::no;
  const script* runs = nullptr;    // or null
  std::vector<pending> members{};  // of a batch, which has no completion of its own

  // What it counts for.
  [[nodiscard]] std::size_t size() const noexcept { return members.empty() ? 1 : members.size(); }
};

// First in, first out. The memory of some that have left is used again: each thread's command is put
// here by that thread, and taken out by another.
class pending_queue {
 public:
  using iterator = std::list<pending>::iterator;
  using const_iterator = std::list<pending>::const_iterator;

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] pending& front() noexcept { return all_.front(); }
  [[nodiscard]] iterator begin() noexcept { return all_.begin(); }
  [[nodiscard]] iterator end() noexcept { return all_.end(); }
  [[nodiscard]] const_iterator begin() const noexcept { return all_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return all_.end(); }

  void push_back(pending&& one) {
    if (spare_.empty()) {
      all_.push_back(std::move(one));
    } else {
      spare_.front() = std::move(one);
      all_.splice(all_.end(), spare_, spare_.begin());
    }
  }
  // Both of a queue that is not empty.
  [[nodiscard]] pending take_front() {
    pending first = std::move(all_.front());
    drop_front();
    return first;
  }
  void drop_front() noexcept {
    if (spare_.size() < kept) {
      spare_.splice(spare_.begin(), all_, all_.begin());
    } else {
      all_.pop_front();
    }
  }
  template <class Which>
  void erase_if(Which which) {
    all_.remove_if(std::move(which));
  }
  void clear() noexcept { all_.clear(); }

 private:
  static constexpr std::size_t kept = 64;

  std::list<pending> all_;
  std::list<pending> spare_;  // what is left of them ends when they are used again
};

// When a command had better wait for the next answer, which is on its way, and go out with all that came meanwhile.
// Not thread-safe.
class pacing {
 public:
  struct settings {
    // Fewer are sent at once: a thread that is nearly alone never waits for another's answer.
    std::size_t many = 16;
    // Answers of so many writes are awaited: while the server works at one, the other is under way.
    std::size_t writes = 2;
    // So many go out although no answer has come: nothing is gained by waiting for more, and whoever is to read the
    // answers may be slow.
    std::size_t enough = 16;
    // Answers of a server that is further away take too long to be waited for.
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

  // Whether anything was queued since the last write. If so, it is to be written now.
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

  // A command that is queued now had better wait. True only while an answer is to come.
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
  std::array<write, 16> writes_{};  // those not answered in full: a ring
  std::size_t first_ = 0;           // of them
  std::size_t awaited_ = 0;         // how many
  duration fastest_ = duration::max();
};

// The server does nothing else meanwhile: a tenth of a millisecond.
inline constexpr std::size_t batch_limit = 32;

// How many of them go as one call, from the first on; 1: that goes alone. There is at least one.
[[nodiscard]] std::size_t batch_size(const pending_queue& from);
// Takes so many out, as one.
[[nodiscard]] pending take_batch(pending_queue& from, std::size_t count);
// The answer for each member of a batch. nil: nothing was done for it, since some of the others take memory, of which
// the server has none left; it is to go alone.
[[nodiscard]] std::vector<reply> batch_answers(const pending& whole, reply answer);

}  // namespace holdfast::redis
