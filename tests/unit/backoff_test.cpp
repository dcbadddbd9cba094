// Full-jitter back-off.
#include "core/backoff.hpp"

#include "support/times.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast::test {
namespace {

using core::backoff;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

// The greatest pause that the n-th step can give, found by asking with many numbers.
duration greatest(backoff at, int steps_before) {
  for (int i = 0; i < steps_before; ++i) at.next(0);
  duration found{0};
  for (std::uint64_t number = 0; number < 3'000'000'000; number += 999'983) {
    backoff copy = at;
    found = std::max(found, copy.next(number));
  }
  return found;
}

TEST(backoff, a_pause_lies_between_zero_and_a_ceiling_that_doubles_up_to_the_limit) {
  // Broken: retries come in lockstep, too fast, or ever more slowly.
  const backoff policy(retry_policy::exponential(50ms, 400ms));
  int step = 0;
  for (const duration ceiling : {50ms, 100ms, 200ms, 400ms, 400ms}) {
    EXPECT_LT(greatest(policy, step), ceiling) << step;
    EXPECT_GT(greatest(policy, step), ceiling * 9 / 10) << step;
    ++step;
  }
}

TEST(backoff, zero_is_as_likely_as_any_pause) {
  // Broken: no jitter at the lower end: all come back together after a pause.
  backoff policy(retry_policy::exponential(50ms, 2s));
  EXPECT_EQ(policy.next(0), 0s);
}

TEST(backoff, a_reset_starts_with_the_first_pause) {
  // Broken: after an outage the next one begins with long pauses.
  backoff policy(retry_policy::exponential(50ms, 2s));
  for (int i = 0; i < 10; ++i) policy.next(0);
  policy.reset();
  EXPECT_LT(greatest(policy, 0), 50ms);
}

TEST(backoff, the_greatest_policy_does_not_overflow) {
  // Broken: a doubled step becomes negative.
  backoff policy(retry_policy::exponential(forever / 3, forever));
  for (int i = 0; i < 5; ++i) EXPECT_GE(policy.next(most), 0s);
}

TEST(backoff, a_first_pause_above_the_limit_is_cut_to_it) {
  // Broken: {.first = 10s} waits longer than the limit says.
  const backoff policy(retry_policy::exponential(10s, 1s));
  EXPECT_LT(greatest(policy, 0), 1s);
}

TEST(backoff, no_pause_at_all_is_allowed) {
  // Broken: a division by zero.
  backoff policy(retry_policy::exponential(0s, 0s));
  EXPECT_EQ(policy.next(most), 0s);
  EXPECT_EQ(policy.next(most), 0s);
}

}  // namespace
}  // namespace holdfast::test
