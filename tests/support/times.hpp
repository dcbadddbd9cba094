// Times for tests of the core: they count from a start that is neither zero nor equal on both
// clocks, so that mixing up the two kinds of time shows.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

namespace holdfast::test {

using namespace std::chrono_literals;

// On the client's clock, since the test began.
constexpr time_point at(duration since) noexcept { return time_point(1000s + since); }

// On the server's clock, at the same moment.
constexpr spi::server_time server_at(duration since) noexcept {
  return spi::server_time(777'000s + since);
}

}  // namespace holdfast::test
