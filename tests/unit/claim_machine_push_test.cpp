// Grants by push: how they are dated, when they are trusted, what they overtake.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

// In the queue since at(0), as the server said at server_at(1ms).
claim_machine waiting_claim(core::machine_settings settings = usual_settings()) {
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(2ms), at(0s), blocked_in_line(1ms));
  return machine;
}

TEST(claim_machine_push, a_push_is_dated_by_the_servers_clock_since_it_said_waiting) {
  // Broken: a push that was read late is valid for too long.
  claim_machine machine = waiting_claim();
  EXPECT_EQ(said(machine.notified(at(600ms), offer(8, 501ms))), "settle:8");
  // 500 ms after "waiting", which was asked at 0: not before 495 ms.
  EXPECT_EQ(machine.valid_until(), at(495ms) + 2s - 20ms - 2ms);
}

TEST(claim_machine_push, a_push_is_never_dated_after_its_receipt) {
  // Broken: a server clock that ran ahead or jumped makes us date a hold in the future.
  claim_machine machine = waiting_claim();
  EXPECT_EQ(said(machine.notified(at(600ms), offer(8, 60s))), "settle:8");
  EXPECT_EQ(machine.valid_until(), at(600ms) + 2s - 20ms - 2ms);
}

TEST(claim_machine_push, a_push_read_after_the_offer_ended_grants_nothing) {
  // Broken: a process that was stopped across the push is valid beside the next holder.
  claim_machine machine = waiting_claim();
  EXPECT_EQ(said(machine.notified(at(3s), offer(8, 501ms))), "attempt");
  EXPECT_EQ(machine.where(), phase::seeking);
  EXPECT_EQ(said(machine.attempted(at(3s + 2ms), at(3s), blocked_in_line(3s + 1ms))), "");
}

TEST(claim_machine_push, a_push_before_any_answer_is_dated_from_the_attempt) {
  // Broken: the push overtakes the attempt's own answer in half of the close races and is dropped.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.notified(at(5ms), offer(8, 4ms))), "settle:8");
  EXPECT_EQ(machine.valid_until(), core::validity_end(at(0s), 2s));
}

TEST(claim_machine_push, a_push_before_any_answer_may_be_of_the_first_attempt) {
  // Broken: placed by the first attempt, offered, ended, and read after the second was sent:
  // valid from then on, beside the next holder.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  machine.tick(at(6s));
  EXPECT_EQ(said(machine.notified(at(6s + 1ms), offer(8, 1s))), "");
  EXPECT_EQ(machine.where(), phase::seeking);
  EXPECT_EQ(said(machine.attempted(at(6s + 2ms), at(6s), granted(12))), "settle:12");
}

TEST(claim_machine_push, a_push_older_than_the_last_waiting_is_only_a_hint) {
  // Broken: an offer ran out while we were stopped; we queued again and then read of it.
  claim_machine machine = waiting_claim();
  machine.tick(at(10s));
  machine.refreshed(at(10s + 2ms), at(10s), not_there());
  machine.attempted(at(10s + 4ms), at(10s + 2ms), blocked_in_line(10s + 3ms));
  EXPECT_EQ(said(machine.notified(at(10s + 5ms), offer(8, 9s + 900ms))), "attempt");
  EXPECT_EQ(machine.where(), phase::seeking);
}

TEST(claim_machine_push, a_refresh_in_line_is_a_newer_date_to_count_from) {
  // Broken: after a long wait the drift margin of the whole wait eats every offer.
  claim_machine machine = waiting_claim();
  machine.tick(at(100s));
  machine.refreshed(at(100s + 2ms), at(100s), still_waiting(100s + 1ms));
  EXPECT_EQ(said(machine.notified(at(101s + 1ms), offer(8, 101s))), "settle:8");
  EXPECT_EQ(machine.valid_until(),
            at(100s) + (999ms - 9990us) + 2s - 20ms - 2ms);  // 999 ms later, less a hundredth
}

TEST(claim_machine_push, a_pushed_grant_is_sticky) {
  // Broken: the attempt's own "blocked", older than the push, takes the grant away again.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.notified(at(5ms), offer(8, 4ms))), "settle:8");
  EXPECT_EQ(said(machine.attempted(at(6ms), at(0s), blocked_in_line(1ms))), "");
  EXPECT_EQ(machine.where(), phase::held);
  EXPECT_EQ(said(machine.notified(at(7ms), std::nullopt)), "");
  EXPECT_EQ(said(machine.notified(at(7ms), offer(8, 4ms))), "");
}

TEST(claim_machine_push, an_attempts_answer_that_was_overtaken_proves_the_hold_too) {
  // Broken: a needless renewal, or a shrinking validity.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.notified(at(5ms), offer(8, 4ms));
  EXPECT_EQ(said(machine.attempted(at(6ms), at(0s), granted(8))), "");
  EXPECT_EQ(machine.valid_until(), core::validity_end(at(0s), 30s));
}

TEST(claim_machine_push, an_answer_with_another_fence_proves_nothing) {
  // Broken: taken away and granted again, with somebody else in between, the holder continues with
  // its old fence.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.notified(at(5ms), offer(8, 4ms));
  const time_point before = machine.valid_until();
  EXPECT_EQ(said(machine.attempted(at(6ms), at(1ms), granted(11))), "");
  EXPECT_EQ(machine.valid_until(), before);
  EXPECT_EQ(machine.fence(), fence_token(8));
}

TEST(claim_machine_push, an_offer_with_little_time_left_is_confirmed_before_it_counts) {
  // Broken: a process that was stopped for almost two seconds gets a lease of some milliseconds.
  claim_machine machine = waiting_claim();
  const time_point half = core::validity_end(at(495ms), 2s) - 1s;
  EXPECT_EQ(said(machine.notified(half + 1us, offer(8, 501ms))), "attempt");
  EXPECT_EQ(machine.where(), phase::seeking);
  EXPECT_EQ(said(machine.attempted(half + 1ms, half + 1us, granted(8))), "settle:8");
  EXPECT_EQ(machine.valid_until(), core::validity_end(half + 1us, 30s));

  claim_machine in_time = waiting_claim();
  EXPECT_EQ(said(in_time.notified(half, offer(8, 501ms))), "settle:8");
}

TEST(claim_machine_push, a_late_offer_while_an_attempt_is_under_way_is_asked_for_after_it) {
  // Broken: the attempt's "blocked", older than the offer, is trusted until the next re-check.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.notified(at(1500ms), offer(8, 1s))), "");
  EXPECT_EQ(said(machine.attempted(at(1600ms), at(0s), blocked_in_line(1ms))), "attempt");
  EXPECT_EQ(said(machine.attempted(at(1700ms), at(1600ms), granted(8))), "settle:8");
}

TEST(claim_machine_push, a_late_offer_is_given_back_by_a_waiter_that_gives_up) {
  // Broken: the caller's deadline comes while the offer is being accepted, and nobody releases the
  // lock.
  claim_machine machine = waiting_claim();
  EXPECT_EQ(said(machine.notified(at(2s), offer(8, 501ms))), "attempt");
  EXPECT_EQ(said(machine.cancel(at(2s + 1ms), {errc::cancelled, ""})),
            "settle:cancelled leave+tombstone");
}

TEST(claim_machine_push, an_offer_is_taken_up_soon_by_a_renewal) {
  // Broken: every pushed grant ends after two seconds, or with a pause of two seconds much later.
  claim_machine machine = waiting_claim();
  machine.notified(at(100ms), offer(8, 100ms));
  const time_point proven = at(99ms - 990us);
  EXPECT_LE(machine.wake_at(), proven + core::default_limits.take_up);
  EXPECT_GE(machine.wake_at(), proven + core::default_limits.take_up * 9 / 10);
  const time_point sent = machine.wake_at();
  EXPECT_EQ(said(machine.tick(sent)), "renew");
  EXPECT_EQ(said(machine.refreshed(sent + 1ms, sent, renewed(8))), "renewed");
  EXPECT_EQ(machine.valid_until(), core::validity_end(sent, 30s));
}

TEST(claim_machine_push, a_short_offer_is_taken_up_at_a_third_of_it) {
  // Broken: a lease of a tenth of a second ends before it is renewed.
  claim_machine machine = waiting_claim();
  machine.notified(at(100ms), offer(8, 100ms, 120ms));
  EXPECT_LE(machine.wake_at(), at(100ms) + 40ms);
}

TEST(claim_machine_push, an_offer_is_taken_up_though_a_waiters_refresh_is_unanswered) {
  // Broken: the refresh that was lost just before the push blocks the renewal until its deadline,
  // and the offer ends meanwhile.
  claim_machine machine = waiting_claim();
  machine.tick(at(2s));  // the refresh, whose answer never comes
  machine.notified(at(2s + 1ms), offer(8, 2s));
  const time_point sent = machine.wake_at();
  EXPECT_LT(sent, at(3s));
  EXPECT_EQ(said(machine.tick(sent)), "renew");
  EXPECT_EQ(said(machine.refreshed(sent + 1ms, at(2s), no_renewal())), "");  // the refresh's
  EXPECT_EQ(machine.wake_at(), machine.valid_until());
  EXPECT_EQ(said(machine.refreshed(sent + 2ms, sent, renewed(8))), "renewed");
  EXPECT_EQ(machine.valid_until(), core::validity_end(sent, 30s));
}

TEST(claim_machine_push, an_offer_that_could_not_be_taken_up_is_lost_in_time) {
  // Broken: what the engine gave for two seconds is valid for the whole ttl.
  claim_machine machine = waiting_claim();
  machine.notified(at(100ms), offer(8, 100ms));
  machine.tick(machine.wake_at());
  EXPECT_EQ(machine.wake_at(), machine.valid_until());
  EXPECT_EQ(said(machine.tick(machine.valid_until())), "lose:lost leave");
}

TEST(claim_machine_push, an_offer_shorter_than_the_notice_is_not_lost_at_once) {
  // Broken: with a notice of more than two seconds every pushed grant is lost on arrival.
  auto settings = usual_settings();
  settings.notice = 10s;
  claim_machine machine = waiting_claim(settings);
  EXPECT_EQ(said(machine.notified(at(100ms), offer(8, 100ms))), "settle:8");
  EXPECT_GT(machine.wake_at(), at(100ms));
  const time_point sent = machine.wake_at();
  EXPECT_EQ(said(machine.tick(sent)), "renew");
  EXPECT_EQ(said(machine.refreshed(sent + 1ms, sent, renewed(8))), "renewed");
}

TEST(claim_machine_push, an_unrenewed_claim_takes_its_offer_up_once) {
  // Broken: a lease that is taken once for ttl ends after two seconds, or is renewed forever.
  auto settings = usual_settings();
  settings.renewed = false;
  claim_machine machine = waiting_claim(settings);
  machine.notified(at(100ms), offer(8, 100ms));
  const time_point sent = machine.wake_at();
  EXPECT_EQ(said(machine.tick(sent)), "renew");
  auto answer = renewed(8);
  answer.state = spi::hold_state::held;
  EXPECT_EQ(said(machine.refreshed(sent + 1ms, sent, answer)), "renewed");
  EXPECT_EQ(machine.wake_at(), core::validity_end(sent, 30s));
}

TEST(claim_machine_push, a_pushed_full_lease_is_no_offer) {
  // Broken: an engine whose pushes carry the whole lease is asked again after a third of nothing.
  claim_machine machine = waiting_claim();
  auto grant = offer(8, 100ms, 30s);
  grant.offer = false;
  machine.notified(at(100ms), grant);
  EXPECT_GE(machine.wake_at(), at(8s));
}

TEST(claim_machine_push, a_push_to_a_claim_that_was_left_is_void) {
  // Broken: a caller that gave up gets a lock, or the lock is held by nobody.
  claim_machine machine = waiting_claim();
  EXPECT_EQ(said(machine.cancel(at(1s), {errc::cancelled, ""})), "settle:cancelled leave");
  EXPECT_EQ(said(machine.notified(at(1s + 1ms), offer(8, 1s))), "");
  EXPECT_EQ(said(machine.departed(at(1s + 2ms), spi::departure::was_holder)), "");
  EXPECT_EQ(machine.where(), phase::ended);
  EXPECT_EQ(said(machine.notified(at(2s), offer(8, 1s))), "");
}

}  // namespace
}  // namespace holdfast::test
