// Full-jitter back-off: the n-th pause is uniform between zero and first * 2^n, capped. And which
// policies there can be.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <cstdint>

namespace holdfast::core {

// invalid: what is wrong with it.
inline result<void> check_retry(const retry_policy& policy, duration longest_pause) {
  if (policy.attempts == 0) return failure(errc::invalid, "a retry policy needs one attempt");
  if (policy.first < duration{0} || policy.limit < duration{0} ||
      std::max(policy.first, policy.limit) > longest_pause) {
    return failure(errc::invalid, "a retry policy's pauses must be from 0 to 24 h");
  }
  if (policy.within < duration{0}) {
    return failure(errc::invalid, "a retry policy's time must not be negative");
  }
  return {};
}

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
