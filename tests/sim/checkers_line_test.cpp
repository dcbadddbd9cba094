// The checkers of waiting, leaving and answers, tested with histories written by hand.
#include "sim/checkers_harness.hpp"

namespace holdfast::sim {

TEST_F(checkers_test, a_free_lock_with_a_waiter_is_seen) {
  hold(1, 0, 1);
  say(what::acquire_invoked, 2, 0, 1);
  say(what::server_left, 1, 0, static_cast<int>(spi::departure::was_holder));
  say(what::acquire_failed, 2, 0, static_cast<int>(errc::timed_out), 11ms);
  EXPECT_NE(broken("no lost wake-up"), "");
}

TEST_F(checkers_test, a_lock_that_is_taken_over_in_time_is_fine) {
  hold(1, 0, 1);
  say(what::acquire_invoked, 2, 0, 1);
  say(what::server_left, 1, 0, static_cast<int>(spi::departure::was_holder));
  say(what::trouble_ended, 9, 0, 0, 9ms);
  grant(2, 0, 2);
  EXPECT_EQ(broken("no lost wake-up"), "");
}

TEST_F(checkers_test, a_grant_that_its_holder_never_learns_of_is_seen) {
  say(what::acquire_invoked, 1, 0, 1);
  grant(1, 0, 1);
  say(what::acquire_granted, 1, 0, 1, 9ms);
  EXPECT_EQ(broken("no lost wake-up"), "");
  say(what::acquire_invoked, 2, 1, 1);
  grant(2, 1, 1);
  say(what::acquire_granted, 2, 1, 1, 11ms);
  EXPECT_NE(broken("no lost wake-up"), "");
}

TEST_F(checkers_test, a_wait_behind_its_own_forgotten_client_is_no_lost_wake_up) {
  hold(1, 0, 1);
  record line = about(1, 0);
  line.kind = what::acquire_invoked;
  line.acquisition = 5;  // of the same client
  line.number = 1;
  add(1ms, line);
  say(what::state_lost, nobody, nobody);
  grant(2, 0, 2);
  say(what::server_left, 2, 0, static_cast<int>(spi::departure::was_holder));
  say(what::trouble_ended, 9, 0, 0, 5s);
  EXPECT_EQ(broken("no lost wake-up"), "");
  say(what::trouble_ended, 9, 0, 0, 10s);
  EXPECT_NE(broken("no lost wake-up"), "");
}

TEST_F(checkers_test, overtaking_in_a_fair_queue_is_seen) {
  say(what::server_queued, 1, 0);
  say(what::server_queued, 2, 0);
  grant(1, 0, 1);
  EXPECT_EQ(broken("FIFO"), "");
  say(what::server_queued, 3, 0);
  grant(3, 0, 2);
  EXPECT_NE(broken("FIFO"), "");
}

TEST_F(checkers_test, an_unreachable_waiter_may_be_skipped) {
  say(what::server_queued, 1, 0);
  say(what::server_queued, 2, 0);
  say(what::unreachable, 1, nobody);
  grant(2, 0, 1);
  EXPECT_EQ(broken("FIFO"), "");
}

TEST_F(checkers_test, a_live_waiter_that_was_thrown_out_keeps_its_right) {
  say(what::server_queued, 1, 0);
  say(what::server_queued, 2, 0);
  say(what::server_forgot, 1, 0);
  grant(2, 0, 1);
  EXPECT_NE(broken("FIFO"), "");
}

TEST_F(checkers_test,
       a_waiter_that_was_not_heard_since_a_lapsed_offer_may_be_passed_over_and_is_not_offered_it) {
  for (const std::int32_t claim : {1, 2, 3}) {
    say(what::server_queued, claim, 0);
    say(what::executed_attempt, claim, 0, static_cast<int>(answer::queued));
  }
  record line = about(1, 0);
  line.kind = what::server_granted;
  line.offer = true;
  line.fence = 1;
  line.until = loop.now() + 2s;
  add(0ms, line);
  say(what::executed_renewal, 3, 0, static_cast<int>(spi::hold_state::waiting), 1s);
  say(what::trouble_ended, 9, 0, 0, 1s);
  grant(3, 0, 2);
  EXPECT_EQ(broken("FIFO"), "");
  EXPECT_EQ(broken("one offer"), "");
  line = about(2, 0);
  line.kind = what::server_granted;
  line.offer = true;
  line.fence = 3;
  add(1ms, line);
  EXPECT_NE(broken("one offer"), "");
}

TEST_F(checkers_test, a_latch_that_opens_too_early_is_seen) {
  say(what::latch_set, 1, 3, 2);
  say(what::latch_down, 2, 3);
  say(what::latch_read, 2, 3, 1);
  EXPECT_EQ(broken("latch"), "");
  say(what::latch_told, 3, 3);
  EXPECT_NE(broken("latch"), "");
}

TEST_F(checkers_test, a_latch_that_counts_too_much_is_seen) {
  say(what::latch_set, 1, 3, 3);
  say(what::latch_down, 2, 3);
  say(what::latch_read, 2, 3, 1);
  EXPECT_NE(broken("latch"), "");
}

TEST_F(checkers_test, a_claim_that_comes_back_after_it_was_left_is_seen) {
  say(what::attempt_sent, 1, 0);
  say(what::leave_sent, 1, 0);
  say(what::left, 1, 0, static_cast<int>(spi::departure::gone));
  EXPECT_EQ(broken("no leak"), "");
  grant(1, 0, 1);
  EXPECT_NE(broken("no leak"), "");
}

TEST_F(checkers_test, a_renewal_after_the_leave_is_seen) {
  say(what::attempt_sent, 1, 0);
  say(what::leave_sent, 1, 0);
  say(what::renewal_sent, 1, 0);
  EXPECT_NE(broken("no leak"), "");
}

TEST_F(checkers_test, a_claim_that_nobody_left_is_seen) {
  say(what::attempt_sent, 1, 0);
  say(what::attempt_answered, 1, 0, static_cast<int>(answer::queued));
  say(what::acquire_failed, 1, 0, static_cast<int>(errc::cancelled));
  EXPECT_NE(broken("no leak"), "");
}

TEST_F(checkers_test, a_hold_that_ran_out_and_was_not_left_is_seen) {
  say(what::attempt_sent, 1, 0, 0, 10s);
  hold(1, 0, 1);
  say(what::validity_ended, 1, 0);
  say(what::lost_told, 1, 0);
  EXPECT_NE(broken("no leak"), "");
}

TEST_F(checkers_test, a_hold_with_a_lock_delay_that_was_lost_with_its_notice_runs_out_by_itself) {
  say(what::attempt_sent, 1, 0, 0, 10s);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.lock_delay = 5s;
  add(1ms, line);
  line.kind = what::validity_ended;
  line.until = loop.now() + 3s;  // the notice
  add(1ms, line);
  say(what::release_invoked, 1, 0);  // before it was notified
  EXPECT_EQ(broken("no leak"), "");
}

TEST_F(checkers_test, a_wait_for_oneself_is_seen) {
  record line = about(1, 0);
  line.kind = what::server_granted;
  line.until = 1min;
  add(1ms, line);
  line.kind = what::server_queued;
  line.claim = 2;
  add(1ms, line);
  EXPECT_NE(broken("no self-block"), "");
}

TEST_F(checkers_test, a_call_without_an_answer_is_seen) {
  say(what::acquire_invoked, 1, 0, 1);
  EXPECT_NE(broken("liveness"), "");
}

TEST_F(checkers_test, the_dead_need_no_answer) {
  say(what::acquire_invoked, 1, 0, 1);
  say(what::killed, 1, 0);
  EXPECT_EQ(broken("liveness"), "");
}

TEST_F(checkers_test, a_hold_that_the_server_did_not_give_is_seen) {
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.fence = 7;
  add(1ms, line);
  EXPECT_NE(broken("outcome honesty"), "");
}

TEST_F(checkers_test, busy_without_the_servers_word_is_seen) {
  say(what::acquire_invoked, 1, 0);
  say(what::attempt_answered, 1, 0, static_cast<int>(answer::unanswered));
  say(what::acquire_failed, 1, 0, static_cast<int>(errc::busy));
  EXPECT_NE(broken("outcome honesty"), "");
}

TEST_F(checkers_test, an_early_loss_that_the_server_denies_is_seen) {
  hold(1, 0, 1);
  say(what::lost_told, 1, 0, 1);
  EXPECT_NE(broken("outcome honesty"), "");
}

TEST_F(checkers_test, a_release_that_was_answered_and_did_not_happen_is_seen) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0);
  say(what::release_answered, 1, 0);
  EXPECT_NE(broken("outcome honesty"), "");
}

TEST_F(checkers_test, a_release_within_a_turn_may_happen_when_the_turn_ends) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0, 1, 10us);
  say(what::release_answered, 1, 0, 0, 10us);
  say(what::server_left, 1, 0, 0, 1ms);
  EXPECT_EQ(broken("outcome honesty"), "");
}

TEST_F(checkers_test, a_claim_that_is_kept_longer_than_a_turn_is_seen) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0, 1, 10us);
  say(what::release_answered, 1, 0, 0, 10us);
  say(what::server_left, 1, 0, 0, 20ms);
  EXPECT_NE(broken("outcome honesty"), "");
}

TEST_F(checkers_test, a_claim_that_is_kept_forever_is_seen) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0, 1, 10us);
  say(what::release_answered, 1, 0, 0, 10us);
  EXPECT_NE(broken("outcome honesty"), "");
}

}  // namespace holdfast::sim
