// Release and withdrawal: what is answered, how long they are repeated, what follows.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

// Repeats the leave without getting an answer; returns the time at which the machine gives up.
time_point abandoned_at(claim_machine& machine) {
  while (machine.where() == phase::leaving) {
    const time_point now = machine.wake_at();
    const std::string orders = said(machine.tick(now));
    if (orders != "leave" && orders != "leave+tombstone") {
      EXPECT_EQ(orders, "release_abandoned");
      return now;
    }
    machine.departed(now, no_answer<spi::departure>());
  }
  return time_point::max();
}

TEST(claim_machine_leaving, a_release_is_one_request_and_its_answer) {
  // Broken: the uncontended release costs more than one round trip.
  claim_machine machine = held_claim();
  EXPECT_EQ(said(machine.release(at(1s))), "leave");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(machine.wake_at(), time_point::max());
  EXPECT_EQ(said(machine.departed(at(1s + 1ms), spi::departure::was_holder)), "released:ok");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_leaving, releasing_what_was_gone_says_so) {
  // Broken: the holder does not learn that somebody else held it too for a time.
  claim_machine machine = held_claim();
  machine.release(at(1s));
  EXPECT_EQ(said(machine.departed(at(1s + 1ms), spi::departure::gone)), "released:lost");
}

TEST(claim_machine_leaving, releasing_a_lost_lease_says_lost_and_sends_nothing) {
  // Broken: a second leave, or the error of an acquisition that failed (node-redlock#168).
  claim_machine machine = held_claim();
  machine.tick(at(40s));
  EXPECT_EQ(said(machine.release(at(40s))), "released:lost");
  machine.departed(at(41s), spi::departure::gone);
  EXPECT_EQ(said(machine.release(at(42s))), "released:lost");
}

TEST(claim_machine_leaving, a_release_without_an_answer_says_so_once_and_goes_on) {
  // Broken: the local state is dropped and the lock stays until its ttl (curator#1193).
  claim_machine machine = held_claim();
  machine.release(at(1s));
  EXPECT_EQ(said(machine.departed(at(6s), no_answer<spi::departure>())),
            "released:unavailable release_pending");
  EXPECT_EQ(machine.where(), phase::leaving);
  const time_point again = machine.wake_at();
  EXPECT_GT(again, at(6s));
  EXPECT_LE(again, at(6s) + 50ms);
  EXPECT_EQ(said(machine.tick(again)), "leave");
  EXPECT_EQ(said(machine.departed(again + 1ms, no_answer<spi::departure>())), "");
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "leave");
  // The first one had worked: not "lost".
  EXPECT_EQ(said(machine.departed(again + 1s, spi::departure::gone)), "");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_leaving, the_background_release_ends_when_nothing_of_ours_can_be_left) {
  // Broken: given up too early it leaves the lock blocked, too late it never ends.
  claim_machine machine = held_claim();
  machine.release(at(1s));
  machine.departed(at(6s), no_answer<spi::departure>());
  const time_point end = abandoned_at(machine);
  EXPECT_GE(end, at(30s) + core::drift_margin(30s));  // the last request was sent at 0
  EXPECT_LE(end, at(33s));
}

TEST(claim_machine_leaving, a_renewal_that_was_sent_but_not_answered_counts_for_the_end) {
  // Broken: the renewal did prolong the claim, and the release gives up before that has ended.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  machine.refreshed(at(15s), at(10s), no_renewal());
  machine.release(at(15s));
  machine.departed(at(20s), no_answer<spi::departure>());
  const time_point end = abandoned_at(machine);
  EXPECT_GE(end, at(40s) + core::drift_margin(30s));
  EXPECT_LE(end, at(43s));
}

TEST(claim_machine_leaving, a_batch_that_left_later_than_ordered_counts_from_when_it_left) {
  // Broken: the process was stopped between the order and the batch; the release gives up before
  // the renewal's prolongation has ended.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  machine.release(at(10s));
  machine.refreshed(at(35s), at(28s), no_renewal());
  machine.departed(at(35s), no_answer<spi::departure>());
  EXPECT_GE(abandoned_at(machine), at(58s) + core::drift_margin(30s));
}

TEST(claim_machine_leaving, a_release_is_not_given_up_while_a_renewal_is_on_its_way) {
  // Broken: nobody knows yet when the renewal was sent, but the release is given up.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  machine.release(at(10s));
  machine.departed(at(60s), no_answer<spi::departure>());
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "leave");
  machine.departed(at(61s), no_answer<spi::departure>());
  machine.refreshed(at(61s), at(10s), no_renewal());
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "release_abandoned");
}

TEST(claim_machine_leaving, a_withdrawn_waiter_is_given_up_after_its_waiters_lease) {
  // Broken: a short ttl ends the withdrawal while the place in the queue lives for 30 s.
  auto settings = usual_settings();
  settings.ttl = 1s;
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.cancel(at(2ms), {errc::cancelled, ""});
  machine.departed(at(1s), no_answer<spi::departure>());
  time_point last{};
  while (machine.where() == phase::leaving) {
    last = machine.wake_at();
    const std::string orders = said(machine.tick(last));
    if (orders.empty()) break;  // never held: nobody is notified
    machine.departed(last, no_answer<spi::departure>());
  }
  EXPECT_EQ(machine.where(), phase::ended);
  EXPECT_GE(last, at(30s));
}

TEST(claim_machine_leaving, nothing_is_renewed_after_a_release) {
  // Broken: a lock that nobody holds is renewed forever (redisson#7272).
  claim_machine machine = held_claim();
  const time_point due = machine.wake_at();
  machine.release(due - 1s);
  EXPECT_EQ(said(machine.tick(due)), "");
  EXPECT_EQ(said(machine.join(due, due + 1s)), "");
  machine.departed(due + 1s, spi::departure::was_holder);
  EXPECT_EQ(said(machine.tick(due + 2s)), "");
  EXPECT_EQ(said(machine.join(due + 2s, due + 100s)), "");
  EXPECT_EQ(machine.wake_at(), time_point::max());
}

TEST(claim_machine_leaving, a_renewal_answered_after_the_release_changes_nothing) {
  // Broken: the late answer of a renewal brings the hold, or its timer, back.
  claim_machine machine = held_claim();
  machine.tick(at(10s));
  machine.release(at(10s + 1ms));
  EXPECT_EQ(said(machine.refreshed(at(10s + 2ms), at(10s), renewed(7))), "");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(machine.wake_at(), time_point::max());
  machine.departed(at(10s + 3ms), spi::departure::was_holder);
  EXPECT_EQ(said(machine.refreshed(at(11s), at(10s), not_there())), "");
}

TEST(claim_machine_leaving, a_tombstone_is_asked_for_only_where_an_attempt_is_unanswered) {
  // Broken: every release costs the engine memory, or a late duplicate revives a released lock.
  claim_machine clean = held_claim();
  EXPECT_EQ(said(clean.release(at(1s))), "leave");

  claim_machine doubtful(usual_settings());
  doubtful.start(at(0s));
  doubtful.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  const time_point again = doubtful.wake_at();
  doubtful.tick(again);
  doubtful.attempted(again + 1ms, again, granted(7));
  EXPECT_EQ(said(doubtful.release(again + 1s)), "leave+tombstone");

  claim_machine overtaken(usual_settings());
  overtaken.start(at(0s));
  overtaken.notified(at(1ms), offer(7, 1ms));
  EXPECT_EQ(said(overtaken.release(at(2ms))), "leave+tombstone");
}

TEST(claim_machine_leaving, an_attempt_answered_while_leaving_changes_nothing) {
  // Broken: a grant that is no longer wanted is handed out.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.cancel(at(1ms), {errc::cancelled, ""})),
            "settle:cancelled leave+tombstone");
  EXPECT_EQ(said(machine.attempted(at(2ms), at(0s), granted(7))), "");
  EXPECT_EQ(said(machine.departed(at(3ms), spi::departure::was_holder)), "");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_leaving, closing_cancels_waiters_and_releases_holds) {
  // Broken: a closed client leaves locks behind.
  claim_machine waiter(usual_settings());
  waiter.start(at(0s));
  waiter.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  EXPECT_EQ(said(waiter.close(at(1s))), "settle:cancelled leave");

  claim_machine holder = held_claim();
  EXPECT_EQ(said(holder.close(at(1s))), "lose:cancelled leave");

  claim_machine fresh(usual_settings());
  EXPECT_EQ(said(fresh.close(at(0s))), "settle:cancelled");
  EXPECT_EQ(said(fresh.start(at(0s))), "");
}

TEST(claim_machine_leaving, closing_repeats_a_release_at_once) {
  // Broken: the two seconds of a close pass while a release waits for its next turn.
  claim_machine machine = held_claim();
  machine.release(at(1s));
  EXPECT_EQ(said(machine.close(at(2s))), "");  // one is in flight
  machine.departed(at(6s), no_answer<spi::departure>());
  EXPECT_EQ(said(machine.close(at(6s))), "leave");
  machine.departed(at(6s + 1ms), spi::departure::was_holder);
  EXPECT_EQ(said(machine.close(at(7s))), "");
}

TEST(claim_machine_leaving, a_refused_leave_is_repeated_too) {
  // Broken: an engine that is read-only for a second keeps the lock for its ttl.
  claim_machine machine = held_claim();
  machine.release(at(1s));
  EXPECT_EQ(said(machine.departed(at(1s + 1ms), failure(errc::denied, "read-only"))),
            "released:unavailable release_pending");
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "leave");
}

}  // namespace
}  // namespace holdfast::test
