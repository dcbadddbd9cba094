// The deadline of a wait: the answer then, and the last try before it.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

core::machine_settings waiting_until(time_point deadline) {
  auto settings = usual_settings();
  settings.deadline = deadline;
  return settings;
}

// What the requester was answered, with its detail.
error refusal(const claim_machine::orders& orders) {
  if (!orders.settle || orders.settle->has_value()) return {errc::invalid, "no refusal"};
  return orders.settle->error();
}

TEST(claim_machine_deadline, a_last_try_is_made_before_saying_no) {
  // Broken: the lock was free, its wake-up lost, and the caller gets "timed out".
  claim_machine machine(waiting_until(at(500ms)));
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(machine.wake_at(), at(500ms));
  EXPECT_EQ(said(machine.tick(at(500ms))), "attempt");
  EXPECT_EQ(said(machine.attempted(at(501ms), at(500ms), granted(7))), "settle:7");
}

TEST(claim_machine_deadline, a_last_try_that_finds_it_taken_times_out_and_withdraws) {
  // Broken: the claim stays in the queue after its requester is gone.
  claim_machine machine(waiting_until(at(500ms)));
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(500ms));
  const auto orders = machine.attempted(at(501ms), at(500ms), blocked_in_line(500ms));
  EXPECT_EQ(said(orders), "settle:timed out leave");
  EXPECT_EQ(refusal(orders).detail, "held by other:1:job");
}

TEST(claim_machine_deadline, a_fresh_answer_makes_a_last_try_needless) {
  // Broken: a wait that ends just after an answer costs one more round trip.
  claim_machine machine(waiting_until(at(5ms)));
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(machine.tick(at(5ms))), "settle:timed out leave");
}

TEST(claim_machine_deadline, the_last_try_has_a_limit) {
  // Broken: the wait is prolonged by a whole command deadline of five seconds.
  claim_machine machine(waiting_until(at(500ms)));
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(500ms));
  EXPECT_EQ(machine.wake_at(), at(600ms));
  EXPECT_EQ(said(machine.tick(at(600ms))), "settle:timed out leave+tombstone");
}

TEST(claim_machine_deadline, a_blocked_answer_after_the_deadline_ends_the_wait) {
  // Broken: a late answer makes the claim wait for another second.
  claim_machine machine(waiting_until(at(500ms)));
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(501ms), at(0s), blocked_in_line(1ms))),
            "settle:timed out leave");
}

TEST(claim_machine_deadline, an_attempt_that_just_left_is_waited_for) {
  // Broken: a claim whose turn comes shortly before the deadline gets "unavailable" from a healthy
  // engine.
  claim_machine machine(waiting_until(at(1ms)));
  machine.start(at(0s));
  EXPECT_EQ(said(machine.tick(at(1ms))), "");
  EXPECT_EQ(machine.wake_at(), at(100ms));
  EXPECT_EQ(said(machine.attempted(at(3ms), at(0s), blocked_in_line(2ms))),
            "settle:timed out leave");
}

TEST(claim_machine_deadline, an_attempt_that_just_left_is_waited_for_but_not_long) {
  // Broken: a silent engine makes a wait of a millisecond last five seconds.
  claim_machine machine(waiting_until(at(1ms)));
  machine.start(at(0s));
  machine.tick(at(1ms));
  EXPECT_EQ(said(machine.tick(at(100ms))), "settle:unavailable leave+tombstone");
}

TEST(claim_machine_deadline, silence_at_the_deadline_is_an_outage_not_contention) {
  // Broken: a dead engine looks like a lock that is held by somebody.
  claim_machine machine(waiting_until(at(1s)));
  machine.start(at(0s));
  EXPECT_EQ(said(machine.tick(at(1s))), "settle:unavailable leave+tombstone");
}

TEST(claim_machine_deadline, the_wait_bounds_an_outage_too) {
  // Broken: retries during an outage continue after the caller's wait.
  claim_machine machine(waiting_until(at(3s)));
  machine.start(at(0s));
  machine.attempted(at(1s), at(0s), no_answer<spi::outcome>());
  time_point now = at(1s);
  std::string orders;
  while (machine.where() == phase::seeking) {
    now = std::max(now, machine.wake_at());
    orders = said(machine.tick(now));
    if (orders == "attempt") machine.attempted(now, now, no_answer<spi::outcome>());
  }
  EXPECT_EQ(now, at(3s));
  EXPECT_EQ(orders, "settle:unavailable leave+tombstone");
}

TEST(claim_machine_deadline, contention_that_ends_in_an_outage_is_still_a_time_out) {
  // Broken: a caller that queued for a minute learns only of the last lost packet.
  claim_machine machine(waiting_until(at(2s)));
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(1s + 1ms));
  machine.refreshed(at(2s), at(1s + 1ms), no_renewal());
  EXPECT_EQ(said(machine.tick(at(2s))), "settle:timed out leave");
}

TEST(claim_machine_deadline, no_deadline_means_no_end) {
  // Broken: "forever" overflows into the past.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(machine.tick(at(std::chrono::hours(24 * 365)))), "renew");
}

}  // namespace
}  // namespace holdfast::test
