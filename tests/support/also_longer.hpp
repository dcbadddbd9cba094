// For properties that must hold with every ttl and every wait, and show sooner with a short one.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace holdfast::test {

// `trial` takes a time and answers a testing::AssertionResult. If the machine is paused for as long
// as a short lease lives, the lease rightly ends; a short wait ends before the engine has answered.
// Then a longer time decides. A real defect fails with each of them.
template <typename Trial>
testing::AssertionResult also_longer(duration first, const Trial& trial) {
  constexpr int times = 5;
  testing::AssertionResult last = testing::AssertionFailure();
  for (int i = 0; i < times && !last; ++i, first *= 4) last = trial(first);
  return last;
}

// `wait` takes a time and returns a result: it must say that the time was over, not that the engine
// did not answer; no earlier than that, and not much later.
template <typename Wait>
testing::AssertionResult waits_in_vain(duration first, const Wait& wait) {
  return also_longer(first, [&](duration time) {
    constexpr std::chrono::seconds much{10};
    const time_point before = clock::now();
    const auto ended = wait(time);
    const duration took = clock::now() - before;
    EXPECT_GE(took, time);
    EXPECT_LT(took, time + much);
    if (ended) return testing::AssertionFailure() << "it was granted";
    if (ended.error() == errc::timed_out) return testing::AssertionSuccess();
    return testing::AssertionFailure() << ended.error().message();
  });
}

}  // namespace holdfast::test
