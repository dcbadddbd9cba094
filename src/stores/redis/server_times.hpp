// What is known of the server's clock: how late it can be there by now, so that a request can carry
// a time after which it must not be executed.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::redis {

// Thread-safe.
class server_times {
 public:
  // A request sent at `sent` was answered at `received` by a server whose clock said `at`.
  void learn(time_point sent, time_point received, spi::server_time at) noexcept {
    const std::lock_guard lock(mutex_);
    if (known_) check(sent, received, at);
    known_ = moment{sent, received, at};
  }

  // Not before the server's clock shows at `when`, with room for clocks that run at other rates.
  [[nodiscard]] std::optional<spi::server_time> latest(time_point when) const noexcept {
    const std::lock_guard lock(mutex_);
    if (!known_) return std::nullopt;
    const duration passed = when - known_->sent;
    return known_->at + passed + passed / rate + slack;
  }

  // How often the server's clock went other than ours, beyond rates and travel times.
  [[nodiscard]] std::uint64_t jumps() const noexcept {
    return jumps_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr duration::rep rate = 100;  // 1 %
  static constexpr duration slack = std::chrono::milliseconds(50);

  struct moment {
    time_point sent;
    time_point received;
    spi::server_time at;
  };

  // Answers overtake each other among threads: only what no order can explain is a jump.
  void check(time_point sent, time_point received, spi::server_time at) noexcept {
    const duration passed = at - known_->at;
    const duration most = received - known_->sent;
    const duration least = sent - known_->received;
    if (passed > most + most / rate + slack || passed < least - least / rate - slack) {
      jumps_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  mutable std::mutex mutex_;
  std::optional<moment> known_;  // guarded by mutex_
  std::atomic<std::uint64_t> jumps_{0};
};

// One renewal that goes to the servers in parts: the last part to be answered completes it.

// Thread-safe where each answer is written by one part only. `missing` begins at one, for who sends the parts:
// it calls arrived() when all are sent.
struct renewing {
  renewing(std::size_t claims, spi::completion<std::vector<spi::renewal>> completion)
      : answers(claims), done(std::move(completion)) {}

  void arrived() {
    if (missing.fetch_sub(1, std::memory_order_acq_rel) == 1) done(std::move(answers));
  }

  std::vector<spi::renewal> answers;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

}  // namespace holdfast::redis
