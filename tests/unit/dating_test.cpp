// When a hold ends, seen from here: the arithmetic alone.
#include "core/dating.hpp"

#include "support/times.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::date_push;
using core::drift_margin;
using core::validity_end;
using core::waiting_proof;

TEST(dating, the_margin_is_a_hundredth_and_two_milliseconds) {
  // Broken: with two clocks whose rates differ by less than 1 %, two holds are valid at once.
  EXPECT_EQ(drift_margin(10s), 102ms);
  EXPECT_EQ(drift_margin(100ms), 3ms);
  EXPECT_EQ(drift_margin(0s), 2ms);
}

TEST(dating, validity_ends_before_a_server_whose_clock_is_a_hundredth_faster) {
  // Broken: the server gives the lock away while the hold is still valid.
  for (const duration ttl : {duration(100ms), duration(1s), duration(30s), duration(24h)}) {
    const auto real_end = duration(static_cast<duration::rep>(double(ttl.count()) / 1.01));
    EXPECT_LT(validity_end(at(0s), ttl), at(0s) + real_end) << ttl.count();
  }
}

TEST(dating, what_does_not_end_by_time_has_no_end) {
  // Broken: "forever" overflows into the past.
  EXPECT_EQ(validity_end(at(0s), forever), time_point::max());
}

TEST(dating, a_push_is_dated_from_the_last_waiting_and_the_servers_progress) {
  // Broken: a push that waited in a socket counts as new.
  const waiting_proof proof{at(0s), server_at(10ms)};
  EXPECT_EQ(date_push(at(60s), proof, server_at(1s + 10ms)), at(990ms));
  EXPECT_EQ(date_push(at(500ms), proof, server_at(1s + 10ms)), at(500ms));  // not before receipt
  EXPECT_EQ(date_push(at(60s), proof, server_at(10ms)), at(0s));
}

TEST(dating, a_push_from_before_the_proof_is_dated_before_it) {
  // Broken: an offer that had ended is dated at a later "waiting", and valid again.
  const waiting_proof proof{at(10s), server_at(10s)};
  EXPECT_EQ(date_push(at(11s), proof, server_at(9s)), at(9s - 10ms));
}

TEST(dating, a_push_is_dated_early_enough_for_a_server_whose_clock_is_a_hundredth_faster) {
  // Broken: after a day in the queue the drift of the wait is not subtracted.
  const waiting_proof proof{at(0s), server_at(0s)};
  for (const duration real : {duration(1s), duration(60s), duration(24h)}) {
    const spi::server_time said = server_at(real + real / 100);
    EXPECT_LE(date_push(at(48h), proof, said), at(real)) << real.count();
  }
}

}  // namespace
}  // namespace holdfast::test
