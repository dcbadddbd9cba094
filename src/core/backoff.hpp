// Full-jitter back-off: the n-th pause is uniform between zero and first * 2^n, capped.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/options.hpp>

#include <algorithm>
#include <cstdint>

namespace holdfast::core {

class backoff {
 public:
  explicit constexpr backoff(const retry_policy& policy = {}) noexcept : policy_(policy) {}

  // The next pause; `random` is uniform over 64 bits.
  constexpr duration next(std::uint64_t random) noexcept {
    const duration ceiling = std::min(policy_.limit, step_);
    step_ = step_ > policy_.limit / 2 ? policy_.limit : step_ * 2;
    if (ceiling <= duration{1}) return ceiling;
    return duration(
        static_cast<duration::rep>(random % static_cast<std::uint64_t>(ceiling.count())));
  }
  constexpr void reset() noexcept { step_ = policy_.first; }

 private:
  retry_policy policy_;
  duration step_ = policy_.first;
};

}  // namespace holdfast::core
