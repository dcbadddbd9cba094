// A claim that seeks the lock: attempts, queueing, wake-ups, refusals.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

TEST(claim_machine_seeking, a_free_lock_costs_one_attempt) {
  // Broken: the uncontended path asks more than once, or settles with another fence.
  claim_machine machine(usual_settings());
  EXPECT_EQ(said(machine.start(at(0s))), "attempt");
  EXPECT_EQ(said(machine.attempted(at(1ms), at(0s), granted(7))), "settle:7");
  EXPECT_EQ(machine.where(), phase::held);
  EXPECT_EQ(machine.fence(), fence_token(7));
  EXPECT_EQ(machine.granted_ttl(), 30s);
}

TEST(claim_machine_seeking, while_an_attempt_is_on_its_way_nothing_else_is_wanted) {
  // Broken: a slow engine is asked the same thing repeatedly.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(machine.wake_at(), time_point::max());
  EXPECT_EQ(said(machine.tick(at(4s))), "");
}

TEST(claim_machine_seeking, a_waiter_asks_again_after_a_second_even_if_no_push_comes) {
  // Broken: a lost push leaves a waiter asleep for the holder's whole ttl.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(2ms), at(0s), blocked_in_line(1ms))), "");
  EXPECT_EQ(machine.wake_at(), at(1s + 2ms));
  EXPECT_EQ(said(machine.tick(at(1s + 1ms))), "");
  EXPECT_EQ(said(machine.tick(at(1s + 2ms))), "renew");
  EXPECT_EQ(said(machine.refreshed(at(1s + 4ms), at(1s + 2ms), still_waiting(1s + 3ms))), "");
  EXPECT_EQ(machine.wake_at(), at(2s + 4ms));
}

TEST(claim_machine_seeking, a_waiter_asks_again_when_the_blocker_ends_but_never_spins) {
  // Broken: waiters sleep beyond the end of the blocking lease, or ask without pause.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms, 300ms));
  EXPECT_EQ(machine.wake_at(), at(302ms));
  machine.tick(at(302ms));
  machine.refreshed(at(303ms), at(302ms), still_waiting(302ms, 0s));
  EXPECT_EQ(machine.wake_at(), at(304ms));
}

TEST(claim_machine_seeking, a_renewal_in_line_finds_the_grant_whose_push_was_lost) {
  // Broken: a granted claim continues to wait for itself.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(2s));
  EXPECT_EQ(said(machine.refreshed(at(2s + 1ms), at(2s), renewed(9))), "settle:9");
  EXPECT_EQ(machine.valid_until(), core::validity_end(at(2s), 30s));
}

TEST(claim_machine_seeking, a_waiter_that_was_evicted_queues_again) {
  // Broken: a waiter that the engine forgot waits forever (redisson#3004).
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(2s));
  EXPECT_EQ(said(machine.refreshed(at(2s + 1ms), at(2s), not_there())), "attempt");
}

TEST(claim_machine_seeking, a_waiter_whose_session_ended_queues_again) {
  // Broken: a waiter learns of its dead session only when the holder leaves (etcd#19597).
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(machine.gone(at(3ms), {errc::lost, "session expired"})), "attempt");
  // The answer in flight may be from before the session ended.
  EXPECT_EQ(said(machine.gone(at(4ms), {errc::lost, "session expired"})), "");
  EXPECT_EQ(said(machine.attempted(at(5ms), at(3ms), blocked_in_line(4ms))), "attempt");
}

TEST(claim_machine_seeking,
     a_grant_that_was_taken_away_before_its_answer_came_is_asked_for_at_once) {
  // Broken: a forced release that overtakes the grant's own answer is noticed with the renewal ten
  // seconds later, and two work meanwhile.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.gone(at(1ms), {errc::lost, "released by force"})), "");
  machine.attempted(at(2ms), at(0s), granted(7));
  EXPECT_EQ(machine.wake_at(), at(2ms));
  EXPECT_EQ(said(machine.tick(at(2ms))), "renew");
  EXPECT_EQ(said(machine.refreshed(at(3ms), at(2ms), not_there())), "lose:lost");
}

TEST(claim_machine_seeking, a_wake_up_asks_again_at_once) {
  // Broken: freed locks are found by polling only.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(machine.notified(at(5ms), std::nullopt)), "attempt");
}

TEST(claim_machine_seeking, a_wake_up_during_an_attempt_is_not_lost) {
  // Broken: freed between the engine's decision and its answer, the lock stays free (redisson#1763).
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.notified(at(1ms), std::nullopt)), "");
  EXPECT_EQ(said(machine.attempted(at(2ms), at(0s), blocked_in_line(1ms))), "attempt");
  EXPECT_EQ(said(machine.attempted(at(4ms), at(2ms), blocked_in_line(3ms))), "");
}

TEST(claim_machine_seeking, where_the_engine_keeps_no_line_a_watch_is_armed_before_waiting) {
  // Broken: nobody notifies the waiter, or what happened while arming is missed.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(1ms), at(0s), blocked_outside())), "watch");
  EXPECT_EQ(said(machine.watched(at(2ms), spi::armed::recheck)), "attempt");
  EXPECT_EQ(said(machine.attempted(at(3ms), at(2ms), blocked_outside())), "watch");
  EXPECT_EQ(said(machine.watched(at(4ms), spi::armed::no_gap)), "");
  EXPECT_EQ(machine.wake_at(), at(1s + 3ms));
  EXPECT_EQ(said(machine.tick(at(1s + 3ms))), "attempt");
}

TEST(claim_machine_seeking, a_watch_that_cannot_be_armed_is_replaced_by_polling) {
  // Broken: with the subscription down and commands working, a waiter asks without any pause.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_outside());
  EXPECT_EQ(said(machine.watched(at(2ms), no_answer<spi::armed>())), "");
  EXPECT_EQ(machine.wake_at(), at(12ms));
  machine.tick(at(12ms));
  EXPECT_EQ(said(machine.attempted(at(13ms), at(12ms), blocked_outside())), "watch");
  EXPECT_EQ(said(machine.watched(at(14ms), no_answer<spi::armed>())), "");
  EXPECT_EQ(machine.wake_at(), at(34ms));
}

TEST(claim_machine_seeking, a_late_answer_to_a_watch_does_not_disturb_an_attempt) {
  // Broken: two attempts of one claim at the same time.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_outside());
  machine.notified(at(2ms), std::nullopt);
  EXPECT_EQ(said(machine.watched(at(3ms), spi::armed::recheck)), "");
  EXPECT_EQ(said(machine.watched(at(3ms), no_answer<spi::armed>())), "");
}

TEST(claim_machine_seeking, without_pushes_polling_slows_down_to_a_second) {
  // Broken: an engine without wake-ups is hammered, or a free lock is found late.
  auto settings = usual_settings();
  settings.pushes = false;
  claim_machine machine(settings);
  machine.start(at(0s));
  time_point now = at(0s);
  for (const duration pause : {10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 640ms, 1000ms, 1000ms}) {
    EXPECT_EQ(said(machine.attempted(now, now, blocked_outside())), "");
    EXPECT_EQ(machine.wake_at(), now + pause);
    now = machine.wake_at();
    EXPECT_EQ(said(machine.tick(now)), "attempt");
  }
}

TEST(claim_machine_seeking, an_older_renewals_answer_is_void_while_an_attempt_is_on_its_way) {
  // Broken: a "not there" from before the attempt makes the claim queue a second time.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(2s));
  EXPECT_EQ(said(machine.notified(at(2s + 1ms), std::nullopt)), "attempt");
  EXPECT_EQ(said(machine.refreshed(at(2s + 2ms), at(2s), not_there())), "");
  EXPECT_EQ(said(machine.attempted(at(2s + 3ms), at(2s + 1ms), granted(3))), "settle:3");
}

TEST(claim_machine_seeking, a_try_that_finds_it_taken_is_busy_and_leaves_nothing) {
  // Broken: a try costs a second round trip, or waits.
  auto settings = usual_settings();
  settings.queued = false;
  settings.deadline = at(0s);
  claim_machine machine(settings);
  EXPECT_EQ(said(machine.start(at(0s))), "attempt");
  EXPECT_EQ(said(machine.tick(at(1ms))), "");
  EXPECT_EQ(said(machine.attempted(at(2ms), at(0s), blocked_outside())), "settle:busy");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_seeking, a_try_without_an_answer_is_undone) {
  // Broken: a try whose answer was lost keeps the lock for its ttl.
  auto settings = usual_settings();
  settings.queued = false;
  claim_machine machine(settings);
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(5s), at(0s), no_answer<spi::outcome>())),
            "settle:unavailable leave+tombstone");
  EXPECT_EQ(machine.where(), phase::leaving);
}

TEST(claim_machine_seeking, a_refusal_changed_nothing_and_needs_no_leave) {
  // Broken: an error of the engine is retried, or costs a needless request.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(1ms), at(0s), failure(errc::name_conflict, "a latch"))),
            "settle:name conflict");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_seeking, a_refusal_after_an_unanswered_attempt_still_leaves) {
  // Broken: the first attempt did place the claim, and nobody removes it.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  machine.tick(machine.wake_at());
  EXPECT_EQ(said(machine.attempted(at(6s), at(5s + 50ms), failure(errc::denied, "not allowed"))),
            "settle:denied leave+tombstone");
}

TEST(claim_machine_seeking, a_refusal_after_waiting_still_leaves) {
  // Broken: a place in the queue, or a watch that the engine keeps, stays behind.
  for (const auto& waiting : {blocked_in_line(1ms), blocked_outside()}) {
    claim_machine machine(usual_settings());
    machine.start(at(0s));
    machine.attempted(at(1ms), at(0s), waiting);
    machine.notified(at(2ms), std::nullopt);
    EXPECT_EQ(said(machine.attempted(at(3ms), at(2ms), failure(errc::denied, "no"))),
              "settle:denied leave");
  }
}

TEST(claim_machine_seeking, a_grant_that_took_longer_than_its_lease_is_not_handed_out) {
  // Broken: a lock is returned that has already ended (node-redlock#296): the answer was in a
  // buffer while the process was stopped.
  auto settings = usual_settings();
  settings.ttl = 1s;
  claim_machine machine(settings);
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(1100ms), at(0s), granted(4, 1s))), "");
  EXPECT_EQ(machine.where(), phase::seeking);
  const time_point again = machine.wake_at();
  EXPECT_LE(again, at(1100ms) + 50ms);
  EXPECT_EQ(said(machine.tick(again)), "attempt");
  EXPECT_EQ(said(machine.attempted(again + 1ms, again, granted(4, 1s))), "settle:4");
  EXPECT_EQ(machine.valid_until(), again + 1s - 10ms - 2ms);  // from the start of its own attempt
}

TEST(claim_machine_seeking, a_try_whose_grant_came_too_late_gives_it_back) {
  // Broken: nobody holds what the engine keeps for this claim.
  auto settings = usual_settings();
  settings.queued = false;
  settings.ttl = 1s;
  claim_machine machine(settings);
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(2s), at(0s), granted(4, 1s))), "settle:unavailable leave");
}

TEST(claim_machine_seeking, a_grant_says_that_others_wait) {
  // Broken: local hand-overs continue while another process waits.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  auto grant = lease_of(5);
  grant.wanted = true;
  EXPECT_EQ(said(machine.attempted(at(1ms), at(0s), spi::outcome(grant))), "settle:5 wanted");
}

}  // namespace
}  // namespace holdfast::test
