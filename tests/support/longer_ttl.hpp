// For what must hold with every ttl, and shows sooner with a short one.
#pragma once

#include <holdfast/clock.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace holdfast::test {

// `trial` takes a ttl and answers a testing::AssertionResult. A machine that stands still for as long as a
// short lease lives lets it end, and rightly so: then a longer one decides. What is never renewed at all
// fails with each of them.
template <typename Trial>
testing::AssertionResult also_with_a_longer_ttl(const Trial& trial) {
  using namespace std::chrono_literals;
  testing::AssertionResult last = testing::AssertionFailure();
  for (const duration ttl : std::array<duration, 3>{1s, 4s, 16s}) {
    last = trial(ttl);
    if (last) break;
  }
  return last;
}

}  // namespace holdfast::test
