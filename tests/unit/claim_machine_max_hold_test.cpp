// The longest hold: renewed or not, a lease ends with it, its holder is notified as early as it
// asked for, and the lock is free then.
#include "support/claim_script.hpp"
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

core::machine_settings at_most(duration longest, duration notice = 0s) {
  core::machine_settings settings = usual_settings();
  settings.max_hold = longest;
  settings.notice = notice;
  return settings;
}

// Granted at(0s), as soon as it was requested.
claim_machine held_at_once(const core::machine_settings& settings) {
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(0s), at(0s), granted(7));
  return machine;
}

// Answers every renewal at once until `end`.
void renew_until(claim_machine& machine, time_point end) {
  for (time_point now = machine.wake_at(); now < end; now = machine.wake_at()) {
    ASSERT_EQ(said(machine.tick(now)), "renew");
    ASSERT_EQ(said(machine.refreshed(now, now, renewed(7))), "renewed");
  }
}

TEST(claim_machine_max_hold, a_renewed_lease_ends_with_its_longest_hold) {
  // Broken: a hung holder keeps the lock as long as its process lives.
  claim_machine machine = held_at_once(at_most(100s));
  EXPECT_LT(machine.valid_until(), at(30s));  // by its ttl, until it is renewed
  renew_until(machine, at(100s));
  EXPECT_EQ(machine.valid_until(), at(100s));
  EXPECT_EQ(machine.wake_at(), at(100s));
  const auto orders = machine.tick(at(100s));
  EXPECT_EQ(said(orders), "lose:lost leave");
  EXPECT_EQ(orders.loss, loss_cause::max_hold);
  EXPECT_EQ(orders.lose->detail, "held for its longest time");
  EXPECT_EQ(said(machine.departed(at(100s), spi::departure::was_holder)), "");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_max_hold, shorter_than_the_ttl_it_ends_before_the_first_renewal) {
  // Broken: the longest hold is seen only when a renewal is due.
  claim_machine machine = held_at_once(at_most(5s));
  EXPECT_EQ(machine.valid_until(), at(5s));
  EXPECT_EQ(machine.wake_at(), at(5s));
  EXPECT_EQ(said(machine.tick(at(5s) - 1ns)), "");
  EXPECT_EQ(said(machine.tick(at(5s))), "lose:lost leave");
}

TEST(claim_machine_max_hold, counts_from_the_grant_and_not_from_the_request) {
  // Broken: a client that waited long may not hold at all.
  claim_machine machine(at_most(20s));
  machine.start(at(0s));
  machine.attempted(at(1s), at(0s), blocked_in_line(0s));
  machine.notified(at(60s), std::nullopt);
  machine.attempted(at(61s), at(60s), granted(7));
  EXPECT_EQ(machine.where(), phase::held);
  EXPECT_EQ(machine.valid_until(), at(81s));
}

TEST(claim_machine_max_hold,
     lost_fires_its_notice_before_and_nobody_else_is_let_in_before_the_end) {
  // Broken: with notice the lock is given away while its holder is still stopping.
  claim_machine machine = held_at_once(at_most(100s, 5s));
  renew_until(machine, at(95s));
  EXPECT_EQ(machine.wake_at(), at(95s));
  EXPECT_EQ(said(machine.tick(at(95s))), "lose:lost");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(machine.wake_at(), at(100s));
  EXPECT_EQ(said(machine.tick(at(100s) - 1ns)), "");
  EXPECT_EQ(said(machine.tick(at(100s))), "leave");
}

TEST(claim_machine_max_hold, a_holder_that_stops_within_its_notice_frees_the_lock_at_once) {
  // Broken: others wait for the rest of a notice that nobody needs.
  claim_machine machine = held_at_once(at_most(100s, 5s));
  renew_until(machine, at(95s));
  machine.tick(at(95s));
  EXPECT_EQ(said(machine.release(at(96s))), "leave");
  EXPECT_EQ(said(machine.departed(at(96s), spi::departure::was_holder)), "released:ok");
}

TEST(claim_machine_max_hold, a_release_of_it_without_an_answer_is_repeated) {
  // Broken: a lost release keeps the lock until its ttl ends.
  claim_machine machine = held_at_once(at_most(5s));
  EXPECT_EQ(said(machine.tick(at(5s))), "lose:lost leave");
  EXPECT_EQ(said(machine.departed(at(6s), no_answer<spi::departure>())), "");
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "leave");
}

TEST(claim_machine_max_hold,
     with_a_lock_delay_it_runs_out_so_that_the_engine_sees_an_abnormal_end) {
  // Broken: a hung holder and its successor write at once, although the lock was to stay blocked.
  core::machine_settings settings = at_most(5s);
  settings.lock_delay = 1min;
  claim_machine machine = held_at_once(settings);
  EXPECT_EQ(said(machine.tick(at(5s))), "lose:lost");
  EXPECT_EQ(machine.where(),
            phase::leaving);  // its release, should it come, frees the lock cleanly
  EXPECT_EQ(machine.wake_at(), core::validity_end(at(0s), 30s));
  EXPECT_TRUE(machine.tick(machine.wake_at()).forget);
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_max_hold, where_holds_do_not_end_by_time_it_is_left_with_or_without_a_delay) {
  // Broken: on the embedded store the lock stays with a hung process forever.
  core::machine_settings settings = at_most(5s);
  settings.lock_delay = 1min;
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(0s), at(0s), granted(7, forever));
  EXPECT_EQ(machine.valid_until(), at(5s));
  EXPECT_EQ(said(machine.tick(at(5s))), "lose:lost leave");
}

TEST(claim_machine_max_hold, a_lease_that_is_not_confirmed_is_lost_before) {
  // Broken: with a longest hold the end of validity is ignored.
  claim_machine machine = held_at_once(at_most(100s));
  const time_point end = machine.valid_until();
  machine.tick(at(10s));
  const auto orders = machine.tick(end);
  EXPECT_EQ(said(orders), "lose:lost leave");
  EXPECT_EQ(orders.loss, loss_cause::unconfirmed);
}

TEST(engine_max_hold, it_is_not_passed_on_inside_the_process_and_takes_nothing_over) {
  // Broken: the next thread is told of a loss at the end of its predecessor's time, or never.
  for (const bool first_limited : {true, false}) {
    engine_bench bench;
    core::request limited = request_for("stock");
    limited.lock.max_hold = 100s;
    const auto first = bench.ask(first_limited ? limited : request_for("stock"));
    const auto second = bench.ask(first_limited ? request_for("stock") : limited);
    bench.grant(1);
    ASSERT_EQ(first->state(), "granted 1");
    first->granted.reset();
    bench.runtime->run_ready();
    EXPECT_EQ(second->state(), "waiting");  // for the engine
  }
}

TEST(engine_max_hold, limits) {
  // Broken: a lock is taken whose holder is immediately told to give it up.
  core::request request = request_for("stock");
  request.lock.max_hold = 99ms;
  EXPECT_FALSE(core::check_limits(request, core::limits{}));
  request.lock.max_hold = 10s;
  request.lock.notice = 5s;
  EXPECT_FALSE(core::check_limits(request, core::limits{}));
  request.lock.notice = 5s - 1ms;
  EXPECT_TRUE(core::check_limits(request, core::limits{}));
}

}  // namespace
}  // namespace holdfast::test
