// Retries while the engine does not answer: how many, how far apart, and that they are the same
// claim every time.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

#include <set>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

// Unanswered attempts until the machine gives up, and its answer then.
struct outage {
  int attempts = 1;
  std::string last;
};

outage fail_until_given_up(claim_machine& machine, time_point now, int limit = 1000) {
  outage seen;
  seen.last = said(machine.attempted(now, now, no_answer<spi::outcome>()));
  while (machine.where() == phase::seeking && seen.attempts < limit) {
    now = machine.wake_at();
    EXPECT_EQ(said(machine.tick(now)), "attempt");
    ++seen.attempts;
    seen.last = said(machine.attempted(now, now, no_answer<spi::outcome>()));
  }
  return seen;
}

TEST(claim_machine_retry, by_default_an_outage_is_retried_while_the_wait_lasts) {
  // Broken: a caller that waits forever gives up by itself.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(fail_until_given_up(machine, at(0s), 200).attempts, 200);
  EXPECT_EQ(machine.where(), phase::seeking);
}

TEST(claim_machine_retry, never_means_one_attempt) {
  // Broken: a caller that asked for no retry is made to wait.
  auto settings = usual_settings();
  settings.retry = retry_policy::never();
  claim_machine machine(settings);
  machine.start(at(0s));
  const outage seen = fail_until_given_up(machine, at(0s));
  EXPECT_EQ(seen.attempts, 1);
  EXPECT_EQ(seen.last, "settle:unavailable leave+tombstone");
}

TEST(claim_machine_retry, a_number_of_attempts_is_kept) {
  // Broken: off by one.
  auto settings = usual_settings();
  settings.retry = retry_policy::times(3);
  claim_machine machine(settings);
  machine.start(at(0s));
  EXPECT_EQ(fail_until_given_up(machine, at(0s)).attempts, 3);
}

TEST(claim_machine_retry, contention_is_not_counted_and_any_answer_resets_the_count) {
  // Broken: a waiter with few retries gives up because others hold the lock.
  auto settings = usual_settings();
  settings.retry = retry_policy::times(2);
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(0s), at(0s), no_answer<spi::outcome>());
  for (int i = 0; i < 5; ++i) {
    time_point now = std::max(at(0s), machine.wake_at());
    machine.tick(now);
    EXPECT_EQ(said(machine.attempted(now, now, blocked_outside())), "watch");
    EXPECT_EQ(said(machine.notified(now, std::nullopt)), "attempt");
    EXPECT_EQ(said(machine.attempted(now, now, no_answer<spi::outcome>())), "");
  }
}

TEST(claim_machine_retry, pauses_are_jittered_and_grow_to_the_limit) {
  // Broken: all clients of a restarted engine come back at the same moment, or hammer it.
  auto settings = usual_settings();
  settings.retry = retry_policy::exponential(50ms, 2s);
  std::set<duration> first_pauses;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    settings.seed = seed;
    claim_machine machine(settings);
    machine.start(at(0s));
    time_point now = at(0s);
    for (const duration ceiling : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
      machine.attempted(now, now, no_answer<spi::outcome>());
      const duration pause = machine.wake_at() - now;
      EXPECT_GE(pause, core::shortest_pause);
      EXPECT_LE(pause, ceiling);
      if (ceiling == 50ms) first_pauses.insert(pause);
      now += pause;
      machine.tick(now);
    }
  }
  EXPECT_GT(first_pauses.size(), 90U);
}

TEST(claim_machine_retry, a_policy_with_a_time_gives_up_when_it_is_over) {
  // Broken: "for at most five seconds" is as good as forever.
  auto settings = usual_settings();
  settings.retry = retry_policy::for_at_most(5s);
  claim_machine machine(settings);
  time_point now = at(0s);
  machine.start(now);
  while (machine.where() == phase::seeking && now < at(60s)) {
    const std::string last = said(machine.attempted(now, now, no_answer<spi::outcome>()));
    EXPECT_EQ(last, "");
    now = machine.wake_at();
    const std::string next = said(machine.tick(now));
    if (now < at(5s)) {
      EXPECT_EQ(next, "attempt");
    } else {
      EXPECT_EQ(next, "settle:unavailable leave+tombstone");
    }
  }
  EXPECT_EQ(now, at(5s));
}

TEST(claim_machine_retry, an_attempt_that_hangs_is_given_up_with_the_policys_time) {
  // Broken: one silent server blocks a caller for longer than it asked.
  auto settings = usual_settings();
  settings.retry = retry_policy::for_at_most(1s);
  claim_machine machine(settings);
  machine.start(at(0s));
  EXPECT_EQ(machine.wake_at(), at(1s));
  EXPECT_EQ(said(machine.tick(at(1s))), "settle:unavailable leave+tombstone");
}

TEST(claim_machine_retry, contention_is_not_under_the_policys_time) {
  // Broken: a retry policy cuts a wait for another holder short.
  auto settings = usual_settings();
  settings.retry = retry_policy::for_at_most(1s);
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  for (const duration time : {2s, 4s, 6s}) {
    EXPECT_EQ(said(machine.tick(at(time))), "renew");
    EXPECT_EQ(said(machine.refreshed(at(time), at(time), still_waiting(time))), "");
  }
  EXPECT_EQ(machine.where(), phase::seeking);
}

TEST(claim_machine_retry, what_was_not_sent_is_unavailable_at_once_and_leaves_nothing_to_leave) {
  // Broken: an open breaker makes a caller wait, or sends releases to an engine that is down.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(0s), at(0s), failure(spi::not_sent, "breaker"))),
            "settle:unavailable");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_retry, what_was_not_sent_after_an_unanswered_attempt_is_still_left) {
  // Broken: the breaker opens between two attempts, and the first one's claim stays behind.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(0s), at(0s), no_answer<spi::outcome>());
  const time_point again = machine.wake_at();
  machine.tick(again);
  EXPECT_EQ(said(machine.attempted(again, again, failure(spi::not_sent, "breaker"))),
            "settle:unavailable leave+tombstone");
}

TEST(claim_machine_retry, a_policy_without_pauses_does_not_spin) {
  // Broken: {.first = 0} turns an outage into a busy loop.
  auto settings = usual_settings();
  settings.retry = retry_policy::exponential(0s, 0s);
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), no_answer<spi::outcome>());
  EXPECT_EQ(machine.wake_at(), at(2ms));
}

TEST(claim_machine_retry, an_answer_that_it_came_too_late_is_no_answer) {
  // Broken: the engine's refusal of a delayed attempt ends the acquisition.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  EXPECT_EQ(said(machine.attempted(at(1s), at(0s), failure(errc::lost, "too late"))), "");
  EXPECT_EQ(machine.where(), phase::seeking);
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "attempt");
}

TEST(claim_machine_retry, a_waiter_whose_refresh_is_not_answered_attempts_again) {
  // Broken: after a reconnect nobody registers the wake-up again.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(2s));
  EXPECT_EQ(said(machine.refreshed(at(7s), at(2s), no_renewal())), "");
  EXPECT_LE(machine.wake_at(), at(7s) + 50ms);
  EXPECT_EQ(said(machine.tick(machine.wake_at())), "attempt");
}

TEST(claim_machine_retry, the_answer_to_a_retry_counts_from_the_retry) {
  // Broken: validity counted from the first attempt hands out a lock that has ended.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
  const time_point again = machine.wake_at();
  machine.tick(again);
  EXPECT_EQ(said(machine.attempted(again + 1ms, again, granted(7))), "settle:7");
  EXPECT_EQ(machine.valid_until(), core::validity_end(again, 30s));
}

}  // namespace
}  // namespace holdfast::test
