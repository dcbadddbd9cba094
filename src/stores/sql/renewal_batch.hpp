// Renewals of many claims: how many go in one call, and one answer of several calls.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::sql {

// How many renewals go in one call. A server that works on a call is silent meanwhile: a call must
// not take so long that the server seems dead. But each call is a transaction, whose end may cost
// more than the renewals in it: calls are as large as the time allows.
//
// Thread-safe.
class renewal_pace {
 public:
  static constexpr std::size_t fewest = 16;
  static constexpr std::size_t first = 64;
  static constexpr std::size_t most = 1'000;

  [[nodiscard]] std::size_t per_call() const noexcept {
    return per_call_.load(std::memory_order_relaxed);
  }

  // A call with that many claims, which had the time `allowed`, took `time`.
  void took(duration time, std::size_t claims, duration allowed) noexcept {
    const std::size_t now = per_call();
    if (time > allowed / 4) {
      per_call_.store(std::clamp(claims / 2, fewest, now), std::memory_order_relaxed);
    } else if (time < allowed / 8 && claims >= now) {
      per_call_.store(std::min(now * 2, most), std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::size_t> per_call_{first};
};

// A renewal of many claims that takes several calls, and has one answer.
//
// Thread-safe. Claims whose call failed are unknown; if all calls failed,
// the failure is the answer.
class renewal_batch {
 public:
  using answer = spi::completion<std::vector<spi::renewal>>;

  renewal_batch(std::size_t claims, std::size_t parts, answer done)
      : parts_(parts), answers_(claims), open_(parts), done_(std::move(done)) {}

  // Called once for each part. `part`: which claims are in it.
  void take(const std::vector<std::size_t>& part, result<std::vector<spi::renewal>> given) {
    answer finish;
    bool none = false;
    {
      const std::lock_guard lock(mutex_);
      if (given) {
        for (std::size_t i = 0; i < part.size(); ++i) answers_[part[i]] = (*given)[i];
      } else {
        ++failed_;
        why_ = given.error();
        for (const std::size_t i : part) answers_[i].why = why_.detail;
      }
      if (--open_ > 0) return;
      none = failed_ == parts_;
      finish = std::move(done_);
    }
    if (none) return finish(tl::unexpected(why_));
    finish(std::move(answers_));
  }

 private:
  const std::size_t parts_;
  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::vector<spi::renewal> answers_;
  std::size_t open_;
  std::size_t failed_ = 0;
  error why_;
  answer done_;
};

}  // namespace holdfast::sql
