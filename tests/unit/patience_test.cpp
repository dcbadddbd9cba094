// Time limits of the std interface, in any unit and on any clock.
#include <holdfast/detail/patience.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <ratio>

namespace holdfast::detail {
namespace {

using namespace std::chrono_literals;

TEST(patience, is_rounded_up) {
  // Broken: a wait of less than a nanosecond is no wait at all.
  EXPECT_EQ(patience_for(3ms), 3ms);
  EXPECT_EQ(patience_for(std::chrono::duration<double, std::pico>(1.0)), 1ns);
  EXPECT_EQ(patience_for(std::chrono::duration<float>(0.5F)), 500ms);
}

TEST(patience, that_is_negative_is_a_try) {
  // Broken: the standard's locks try once, and ours throw.
  EXPECT_EQ(patience_for(-1s), 0s);
  EXPECT_EQ(patience_for(std::chrono::hours::min()), 0s);
  EXPECT_EQ(patience_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
            0s);
  EXPECT_EQ(patience_until(std::chrono::steady_clock::time_point::min()), 0s);
  EXPECT_EQ(patience_until(std::chrono::system_clock::now() - 1h), 0s);
}

TEST(patience, that_cannot_be_counted_has_no_end) {
  // Broken: the product of an overflow is waited for, or nothing at all.
  EXPECT_EQ(patience_for(std::chrono::hours::max()), forever);
  EXPECT_EQ(patience_for(std::chrono::years(300)), forever);
  EXPECT_EQ(patience_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity())),
            forever);
  EXPECT_EQ(patience_for(forever), forever);
  EXPECT_EQ(patience_until(std::chrono::steady_clock::time_point::max()), forever);
  EXPECT_EQ(patience_until(std::chrono::sys_seconds::max()), forever);
  EXPECT_EQ(patience_until(std::chrono::sys_seconds(
                std::chrono::sys_days(std::chrono::year(2270) / std::chrono::January / 1))),
            forever);
  EXPECT_EQ(patience_until(std::chrono::sys_seconds::min()), 0s);
  EXPECT_EQ(patience_for(std::chrono::years(199)), std::chrono::years(199));
}

}  // namespace
}  // namespace holdfast::detail
