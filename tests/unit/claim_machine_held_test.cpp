// A hold: renewal, loss by the local deadline, loss reported by the engine.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

constexpr time_point end_of_thirty = at(30s - 300ms - 2ms);

TEST(claim_machine_held, validity_counts_from_before_the_request_less_the_margin) {
  // Broken: the hold is valid for longer than the engine keeps it.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(4s), at(0s), granted(7));  // the answer took four seconds
  EXPECT_EQ(machine.valid_until(), end_of_thirty);
}

TEST(claim_machine_held, a_lease_is_renewed_after_a_third_less_a_little_jitter) {
  // Broken: renewals are too late to be repeated, or all at the same moment.
  claim_machine machine = held_claim();
  EXPECT_LE(machine.wake_at(), at(10s));
  EXPECT_GE(machine.wake_at(), at(9s));
  EXPECT_EQ(said(machine.tick(at(8s))), "");
  const time_point due = machine.wake_at();
  EXPECT_EQ(said(machine.tick(due)), "renew");
  EXPECT_EQ(machine.wake_at(), end_of_thirty);  // while it is in flight, only the end matters
  EXPECT_EQ(said(machine.tick(due + 1s)), "");
}

TEST(claim_machine_held, a_renewal_counts_from_when_it_was_sent) {
  // Broken: a slow answer prolongs beyond what the engine granted.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  EXPECT_EQ(said(machine.refreshed(at(14s), at(10s), renewed(7))), "renewed");
  EXPECT_EQ(machine.valid_until(), core::validity_end(at(10s), 30s));
  EXPECT_LE(machine.wake_at(), at(20s));
}

TEST(claim_machine_held, validity_only_grows) {
  // Broken: an old proof that arrives late shortens the validity.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  machine.tick(at(6s));
  machine.notified(at(6s + 1ms), std::nullopt);
  machine.attempted(at(6s + 2ms), at(6s), granted(7));
  const time_point end = machine.valid_until();
  machine.tick(at(16s));
  EXPECT_EQ(said(machine.refreshed(at(16s + 1ms), at(1s), renewed(7, 10s))), "renewed");
  EXPECT_EQ(machine.valid_until(), end);
}

TEST(claim_machine_held, the_holder_is_notified_when_validity_ends_without_an_answer) {
  // Broken: with a silent network the loss is noticed only when some socket gives up (consul#9788).
  claim_machine machine = held_claim();
  machine.tick(at(10s));  // the renewal, whose answer never comes
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
  EXPECT_EQ(said(machine.tick(end_of_thirty - 1ns)), "");
  EXPECT_EQ(said(machine.tick(end_of_thirty)), "lose:lost leave");
}

TEST(claim_machine_held, a_renewal_without_an_answer_is_neither_loss_nor_proof) {
  // Broken: one error ends the renewals, or the lease, or prolongs it.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  EXPECT_EQ(said(machine.refreshed(at(15s), at(10s), no_renewal())), "renewal_failed");
  EXPECT_EQ(machine.where(), phase::held);
  EXPECT_EQ(machine.valid_until(), end_of_thirty);
  EXPECT_GT(machine.wake_at(), at(15s));
  EXPECT_LE(machine.wake_at(), at(15s) + 50ms);
}

TEST(claim_machine_held, renewals_go_on_after_any_number_of_errors_until_validity_ends) {
  // Broken: the watchdog dies after an error and never comes back (redisson#2515, #3194).
  claim_machine machine = held_claim();
  int renewals = 0;
  while (machine.where() == phase::held) {
    const time_point now = machine.wake_at();
    ASSERT_LE(now, end_of_thirty);
    const std::string orders = said(machine.tick(now));
    if (orders != "renew") {
      EXPECT_EQ(orders, "lose:lost leave");
      break;
    }
    ++renewals;
    machine.refreshed(now + 1ms, now, no_renewal());
  }
  EXPECT_GT(renewals, 10);
}

TEST(claim_machine_held, a_renewal_that_succeeds_after_errors_saves_the_lease) {
  // Broken: an outage shorter than the lease costs the lock.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  machine.refreshed(at(15s), at(10s), no_renewal());
  machine.tick(at(20s));
  machine.refreshed(at(25s), at(20s), no_renewal());
  machine.tick(at(29s));
  EXPECT_EQ(said(machine.refreshed(at(29s + 1ms), at(29s), renewed(7))), "renewed");
  EXPECT_EQ(machine.valid_until(), core::validity_end(at(29s), 30s));
}

TEST(claim_machine_held, a_holder_stopped_past_its_lease_has_lost_it_at_the_first_look) {
  // Broken: after a pause or a suspend the holder continues as if nothing had happened.
  claim_machine machine = held_claim();
  EXPECT_EQ(said(machine.tick(at(3600s))), "lose:lost leave");
  EXPECT_EQ(machine.where(), phase::leaving);
}

TEST(claim_machine_held, no_answer_read_after_the_end_brings_a_lease_back) {
  // Broken: after a pause the answers in the socket are read before the timer runs, and revive a
  // lease whose holder was told "not valid" meanwhile.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  EXPECT_EQ(said(machine.refreshed(at(31s), at(10s), renewed(7))), "lose:lost leave");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(said(machine.tick(at(31s))), "");
}

TEST(claim_machine_held, no_attempt_answered_after_the_end_brings_an_offer_back) {
  // Broken: the offer ran out, somebody else held the lock, we were granted again: two grants look
  // like one.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.notified(at(1ms), offer(7, 1ms));
  EXPECT_EQ(said(machine.attempted(at(4s), at(0s), granted(9))), "lose:lost leave");
}

TEST(claim_machine_held, the_engines_not_yours_is_loss_and_nothing_more_is_sent) {
  // Broken: "not yours" taken for a success, or renewed again.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  EXPECT_EQ(said(machine.refreshed(at(10s + 1ms), at(10s), not_there())), "lose:lost");
  EXPECT_EQ(machine.where(), phase::ended);
  EXPECT_EQ(machine.wake_at(), time_point::max());
}

TEST(claim_machine_held, not_yours_to_a_question_of_before_the_grant_is_void) {
  // Broken: the refresh of a waiter, answered after the push, ends the hold.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(1s + 2ms));
  machine.notified(at(1s + 3ms), offer(7, 1s + 2ms));
  EXPECT_EQ(said(machine.refreshed(at(1s + 4ms), at(1s + 2ms), still_waiting(1s + 2ms))), "");
  EXPECT_EQ(machine.where(), phase::held);
}

TEST(claim_machine_held, a_hold_that_became_a_place_in_line_is_lost_and_left) {
  // Broken: the engine keeps a waiter that nobody waits for.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  EXPECT_EQ(said(machine.refreshed(at(10s + 1ms), at(10s), still_waiting(10s))), "lose:lost leave");
}

TEST(claim_machine_held, a_lost_claim_with_an_unanswered_attempt_is_left_for_good) {
  // Broken: the attempt arrives late and holds the lock, for nobody, for a ttl.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  const time_point again = machine.wake_at();
  machine.tick(again);
  machine.attempted(again + 1ms, again, granted(7));
  machine.tick(again + 10s);
  EXPECT_EQ(said(machine.refreshed(again + 10s, again + 10s, not_there())),
            "lose:lost leave+tombstone");
}

TEST(claim_machine_held, what_the_engine_took_away_is_lost_at_once) {
  // Broken: a forced release reaches the holder with the next renewal only.
  claim_machine machine = held_claim();
  EXPECT_EQ(said(machine.gone(at(1s), {errc::lost, "released by force"})), "lose:lost");
  // It may still lead to a release, until the lease would have ended.
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
  EXPECT_FALSE(machine.tick(end_of_thirty).leave);
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_held, a_revoked_claim_is_not_left_before_its_lease_has_ended) {
  // Broken: a safe revocation lets the next one in while the holder is still stopping its work.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.notified(at(1ms), offer(7, 1ms, 30s));  // the attempt is still unanswered
  EXPECT_EQ(said(machine.gone(at(1s), {errc::lost, "revoked"})), "lose:lost");
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
  EXPECT_EQ(said(machine.tick(end_of_thirty)), "leave+tombstone");
}

TEST(claim_machine_held, an_engine_that_prolongs_no_more_has_revoked_it) {
  // Broken: if no message notifies it, the holder of a revoked lock continues until the last
  // moment, and has no time left to stop.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  auto answer = renewed(7, 20s);
  answer.state = spi::hold_state::held;
  const auto todo = machine.refreshed(at(10s + 5ms), at(10s), answer);
  EXPECT_EQ(said(todo), "lose:lost");
  ASSERT_TRUE(todo.lose);
  EXPECT_EQ(todo.lose->detail, "revoked: not renewed any more");
  const time_point end = core::validity_end(at(10s), 20s);
  EXPECT_EQ(machine.wake_at(), end);  // nobody else before that
  EXPECT_EQ(said(machine.tick(end)), "leave");
}

TEST(claim_machine_held, notice_comes_before_the_end_and_the_lock_is_kept_until_then) {
  // Broken: a holder that asked for time to stop is notified and loses the lock at the same moment.
  auto settings = usual_settings();
  settings.notice = 5s;
  claim_machine machine = held_claim(settings);
  machine.tick(at(10s));
  EXPECT_EQ(machine.wake_at(), end_of_thirty - 5s);
  EXPECT_EQ(said(machine.tick(end_of_thirty - 5s)), "lose:lost");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
  EXPECT_EQ(said(machine.tick(end_of_thirty)), "leave");
}

TEST(claim_machine_held, with_a_lock_delay_a_lease_that_was_lost_is_let_run_out) {
  // Broken: a withdrawal looks like a clean release to the engine, and the lock does not stay
  // blocked.
  for (const duration notice : {duration(0s), duration(5s)}) {
    auto settings = usual_settings();
    settings.lock_delay = 15s;
    settings.notice = notice;
    claim_machine machine = held_claim(settings);
    machine.tick(at(10s));  // carried out, perhaps; its answer is read after the end
    EXPECT_EQ(said(machine.refreshed(end_of_thirty - notice, at(10s), renewed(7))), "lose:lost");
    EXPECT_EQ(machine.where(), phase::ended);
    EXPECT_EQ(said(machine.release(end_of_thirty)), "released:lost");
  }
}

TEST(claim_machine_held, after_the_notice_nothing_is_renewed) {
  // Broken: a lock that its holder has given up is kept.
  auto settings = usual_settings();
  settings.notice = 5s;
  claim_machine machine = held_claim(settings);
  machine.tick(at(10s));
  machine.tick(end_of_thirty - 5s);
  EXPECT_EQ(said(machine.refreshed(at(25s), at(10s), renewed(7))), "");
  EXPECT_EQ(said(machine.join(at(26s), at(40s))), "");
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
}

TEST(claim_machine_held, an_unrenewed_lease_ends_after_its_ttl) {
  // Broken: renew::never is renewed, or has no end.
  auto settings = usual_settings();
  settings.renewed = false;
  claim_machine machine = held_claim(settings);
  EXPECT_EQ(machine.wake_at(), end_of_thirty);
  EXPECT_EQ(said(machine.join(at(29s), at(31s))), "");
  EXPECT_EQ(said(machine.tick(end_of_thirty)), "lose:lost leave");
}

TEST(claim_machine_held, a_hold_that_does_not_end_by_time_is_renewed_but_never_lost_by_time) {
  // Broken: if the process's life is the proof, a pause costs the lock.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), granted(7, forever));
  EXPECT_EQ(machine.valid_until(), time_point::max());
  EXPECT_LE(machine.wake_at(), at(10s));
  EXPECT_EQ(said(machine.tick(at(100'000s))), "renew");
  EXPECT_EQ(said(machine.refreshed(at(100'001s), at(100'000s), not_there())), "lose:lost");
}

TEST(claim_machine_held, a_renewal_joins_a_batch_that_leaves_a_little_earlier) {
  // Broken: ten thousand leases cost ten thousand requests.
  claim_machine machine = held_claim();
  const time_point due = machine.wake_at();
  EXPECT_EQ(said(machine.join(due - 1s, due - 800ms)), "");
  EXPECT_EQ(said(machine.join(due - 100ms, due + 100ms)), "renew");
  EXPECT_EQ(said(machine.join(due - 99ms, due + 101ms)), "");  // once
}

TEST(claim_machine_held, a_waiter_joins_a_batch_too) {
  // Broken: each waiter costs a request of its own per second.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.join(at(1ms), at(10s))), "");  // its attempt is in flight
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(machine.join(at(100ms), at(300ms))), "");
  EXPECT_EQ(said(machine.join(at(900ms), at(1100ms))), "renew");
}

TEST(claim_machine_held, a_renewal_says_that_others_wait) {
  // Broken: a push "wanted" that was lost is never made up for.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  auto answer = renewed(7);
  answer.grant.wanted = true;
  EXPECT_EQ(said(machine.refreshed(at(10s + 1ms), at(10s), answer)), "renewed wanted");
}

}  // namespace
}  // namespace holdfast::test
