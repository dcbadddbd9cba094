// Every checker with histories written by hand: it must accept the one that keeps its guarantee,
// and report the one that breaks it. A checker that cannot fail proves nothing. Here: what is held,
// and how it ends; checkers_line_test.cpp has those who wait and leave.
#include "sim/checkers_harness.hpp"

namespace holdfast::sim {

TEST_F(checkers_test, one_valid_holder_after_the_other_is_fine) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0);
  say(what::validity_ended, 1, 0, 0, 0ms);
  hold(2, 0, 2);
  EXPECT_EQ(broken("at most one valid holder"), "");
}

TEST_F(checkers_test, two_valid_holders_of_a_mutex_are_seen) {
  hold(1, 0, 1);
  hold(2, 0, 2);
  EXPECT_NE(broken("at most one valid holder"), "");
}

TEST_F(checkers_test, a_dead_client_holds_nothing) {
  hold(1, 0, 1);
  say(what::killed, 1, 0);
  hold(2, 0, 2);
  EXPECT_EQ(broken("at most one valid holder"), "");
}

TEST_F(checkers_test, readers_may_be_many_but_no_writer_beside_them) {
  hold(1, 1, 1, spi::mode::shared);
  hold(2, 1, 2, spi::mode::shared);
  EXPECT_EQ(broken("reader-writer"), "");
  hold(3, 1, 3, spi::mode::exclusive);
  EXPECT_NE(broken("reader-writer"), "");
}

TEST_F(checkers_test, a_downgrade_ends_exclusiveness_when_it_is_asked_for) {
  hold(1, 1, 1, spi::mode::exclusive);
  record change = about(1, 1, spi::mode::shared);
  change.kind = what::change_invoked;
  add(1ms, change);
  hold(2, 1, 3, spi::mode::shared);
  EXPECT_EQ(broken("reader-writer"), "");
}

TEST_F(checkers_test, more_permits_than_there_are_are_seen) {
  hold(1, 2, 1, spi::mode::permit, 1);
  hold(2, 2, 2, spi::mode::permit, 1);
  EXPECT_EQ(broken("permits"), "");
  hold(3, 2, 3, spi::mode::permit, 1);
  EXPECT_NE(broken("permits"), "");
}

TEST_F(checkers_test, a_fence_that_goes_back_is_seen) {
  hold(1, 0, 5);
  say(what::validity_ended, 1, 0);
  hold(2, 0, 4);
  EXPECT_NE(broken("fence order"), "");
}

TEST_F(checkers_test, a_fence_that_is_given_twice_is_seen) {
  hold(1, 1, 5, spi::mode::shared);
  hold(2, 1, 5, spi::mode::shared);
  EXPECT_NE(broken("fence order"), "");
}

TEST_F(checkers_test, a_fence_that_changes_on_reentry_is_seen) {
  hold(1, 0, 5);
  record line = about(1, 0);
  line.kind = what::reentered;
  line.fence = 5;
  add(1ms, line);
  EXPECT_EQ(broken("fence constancy"), "");
  line.fence = 6;
  add(1ms, line);
  EXPECT_NE(broken("fence constancy"), "");
}

TEST_F(checkers_test, a_hold_that_ends_untold_is_seen) {
  hold(1, 0, 1);
  say(what::validity_ended, 1, 0);
  say(what::trouble_ended, 9, 0, 0, 5ms);
  EXPECT_NE(broken("no silent loss"), "");
}

TEST_F(checkers_test, a_paused_process_need_not_be_notified_before_it_continues) {
  hold(1, 0, 1);
  say(what::paused, 1, 0);
  say(what::validity_ended, 1, 0);
  say(what::resumed, 1, 0, 0, 1s);
  say(what::lost_told, 1, 0, 0, 1ms);
  EXPECT_EQ(broken("no silent loss"), "");
}

TEST_F(checkers_test, a_loss_without_a_cause_is_seen) {
  hold(1, 0, 1);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.number = 1;  // renewed
  line.until = 10s;
  add(0ms, line);
  say(what::validity_ended, 1, 0, 0, 9s);
  say(what::lost_told, 1, 0);
  EXPECT_NE(broken("no needless loss"), "");
}

TEST_F(checkers_test, a_hold_that_the_server_has_not_and_that_goes_on_is_seen) {
  hold(1, 0, 1);
  say(what::renewal_sent, 1, 0);
  say(what::renewal_answered, 1, 0, static_cast<int>(spi::hold_state::lost));
  EXPECT_EQ(broken("no silent loss"), "");
  say(what::trouble_ended, 9, 0, 0, 5ms);
  EXPECT_NE(broken("no silent loss"), "");
}

TEST_F(checkers_test, a_renewal_that_was_sent_before_the_grant_says_nothing_of_the_hold) {
  say(what::renewal_sent, 1, 0);
  hold(1, 0, 1);
  say(what::renewal_answered, 1, 0, static_cast<int>(spi::hold_state::lost));
  say(what::trouble_ended, 9, 0, 0, 5ms);
  EXPECT_EQ(broken("no silent loss"), "");
}

TEST_F(checkers_test, a_renewal_without_an_answer_that_is_not_repeated_is_seen) {
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.number = 1;  // renews itself
  line.until = 10s;
  add(1ms, line);
  say(what::renewal_sent, 1, 0);
  say(what::renewal_answered, 1, 0, static_cast<int>(spi::hold_state::unknown));
  say(what::renewal_sent, 1, 0, 0, 1s);
  say(what::renewal_answered, 1, 0, static_cast<int>(spi::hold_state::unknown));
  EXPECT_EQ(broken("no needless loss"), "");
  say(what::trouble_ended, 9, 0, 0, 2s);
  EXPECT_NE(broken("no needless loss"), "");
}

TEST_F(checkers_test, a_lock_that_opens_before_its_delay_is_over_is_seen) {
  hold(1, 0, 1);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.until = 10s;
  line.lock_delay = 5s;
  add(0ms, line);
  line.kind = what::validity_began;
  add(0ms, line);
  say(what::validity_ended, 1, 0);
  say(what::lost_told, 1, 0);
  say(what::trouble_ended, 9, 0, 0, 4s);
  grant(2, 0, 2);
  EXPECT_NE(broken("lock delay"), "");
}

TEST_F(checkers_test, a_client_killed_after_its_hold_ran_out_blocks_the_lock_from_then_on) {
  grant(1, 0, 1);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.lock_delay = 5s;
  add(0ms, line);
  line.kind = what::validity_began;
  add(0ms, line);
  say(what::validity_ended, 1, 0);  // it is paused, and is not notified
  say(what::killed, 1, 0, 0, 3s);
  say(what::trouble_ended, 9, 0, 0, 3s);
  grant(2, 0, 2);
  EXPECT_EQ(broken("lock delay"), "");
}

}  // namespace holdfast::sim
