// Every checker by a history written by hand: it must stay calm at the one that keeps its guarantee,
// and speak up at the one that breaks it. A checker that cannot fail proves nothing.
#include "sim/checkers.hpp"

#include <holdfast/result.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::sim {

using namespace std::chrono_literals;

class checkers_test : public ::testing::Test {
 protected:
  checkers_test() {
    world.resources = {{resource_kind::mutex, 1},
                       {resource_kind::shared, 1},
                       {resource_kind::semaphore, 2},
                       {resource_kind::latch, 1}};
    world.waiter_lease = 10s;
    world.calm = true;
    world.round_trip = 10ms;
    world.recheck = 1s;
    world.recovery = 1s;
    world.lateness = 1ms;
    watch_all(log, world);
  }

  // Adds a record at a time after the last.
  void add(duration after, record line) {
    loop.at(loop.now() + after, outside, event_class::timer, [this, line] { log.add(line); });
    while (loop.step(moment::max())) {
    }
  }
  // Who broke what, at the end; only of one guarantee, since histories here are fragments.
  std::string broken(std::string_view guarantee) {
    log.finish();
    for (const violation& each : log.violations()) {
      if (each.checker == guarantee) return each.message;
    }
    return "";
  }

  // A hold of its own number, claim and client, from the request to the belief.
  void hold(std::int32_t number, std::int32_t resource, std::uint64_t fence,
            spi::mode mode = spi::mode::exclusive, std::uint32_t permits = 1) {
    record line = about(number, resource, mode, permits);
    line.kind = what::acquire_invoked;
    line.number = 1;
    add(1ms, line);
    grant(number, resource, fence);
    line.fence = fence;
    line.kind = what::acquire_granted;
    line.until = 10s;
    add(1ms, line);
    line.kind = what::belief_began;
    line.number = 0;
    add(0ms, line);
  }
  void grant(std::int32_t number, std::int32_t resource, std::uint64_t fence) {
    record line = about(number, resource);
    line.kind = what::server_granted;
    line.fence = fence;
    line.number = 1;
    line.until = loop.now() + 10s;
    add(0ms, line);
  }
  void say(what kind, std::int32_t number, std::int32_t resource, std::int64_t value = 0,
           duration after = 1ms) {
    record line = about(number, resource);
    line.kind = kind;
    line.number = value;
    line.until = loop.now() + after;
    add(after, line);
  }
  static record about(std::int32_t number, std::int32_t resource,
                      spi::mode mode = spi::mode::exclusive, std::uint32_t permits = 1) {
    record line;
    line.process = number;
    line.resource = resource;
    line.acquisition = number;
    line.claim = number;
    line.hold = number;
    line.mode = mode;
    line.permits = permits;
    line.fair = true;
    return line;
  }

  facts world;
  event_loop loop;
  node outside{node_clock{}};
  history log{loop, nullptr};
};

TEST_F(checkers_test, one_believer_after_the_other_is_fine) {
  hold(1, 0, 1);
  say(what::release_invoked, 1, 0);
  say(what::belief_ended, 1, 0, 0, 0ms);
  hold(2, 0, 2);
  EXPECT_EQ(broken("never two believers"), "");
}

TEST_F(checkers_test, two_believers_of_a_mutex_are_seen) {
  hold(1, 0, 1);
  hold(2, 0, 2);
  EXPECT_NE(broken("never two believers"), "");
}

TEST_F(checkers_test, a_dead_client_believes_nothing) {
  hold(1, 0, 1);
  say(what::killed, 1, 0);
  hold(2, 0, 2);
  EXPECT_EQ(broken("never two believers"), "");
}

TEST_F(checkers_test, readers_may_be_many_but_no_writer_beside_them) {
  hold(1, 1, 1, spi::mode::shared);
  hold(2, 1, 2, spi::mode::shared);
  EXPECT_EQ(broken("reader-writer"), "");
  hold(3, 1, 3, spi::mode::exclusive);
  EXPECT_NE(broken("reader-writer"), "");
}

TEST_F(checkers_test, a_downgrade_ends_the_belief_in_exclusiveness_when_it_is_asked_for) {
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
  say(what::belief_ended, 1, 0);
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
  say(what::belief_ended, 1, 0);
  say(what::trouble_ended, 9, 0, 0, 5ms);
  EXPECT_NE(broken("no silent loss"), "");
}

TEST_F(checkers_test, who_stands_still_need_not_be_told_before_it_goes_on) {
  hold(1, 0, 1);
  say(what::paused, 1, 0);
  say(what::belief_ended, 1, 0);
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
  say(what::belief_ended, 1, 0, 0, 9s);
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
  line.shut = 5s;
  add(0ms, line);
  line.kind = what::belief_began;
  add(0ms, line);
  say(what::belief_ended, 1, 0);
  say(what::lost_told, 1, 0);
  say(what::trouble_ended, 9, 0, 0, 4s);
  grant(2, 0, 2);
  EXPECT_NE(broken("lock delay"), "");
}

TEST_F(checkers_test, a_client_killed_after_its_hold_ran_out_shuts_the_lock_from_then_on) {
  grant(1, 0, 1);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.shut = 5s;
  add(0ms, line);
  line.kind = what::belief_began;
  add(0ms, line);
  say(what::belief_ended, 1, 0);  // it stands still, and is not told
  say(what::killed, 1, 0, 0, 3s);
  say(what::trouble_ended, 9, 0, 0, 3s);
  grant(2, 0, 2);
  EXPECT_EQ(broken("lock delay"), "");
}

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

TEST_F(checkers_test, who_is_granted_and_does_not_learn_it_is_seen) {
  say(what::acquire_invoked, 1, 0, 1);
  grant(1, 0, 1);
  say(what::acquire_granted, 1, 0, 1, 9ms);
  EXPECT_EQ(broken("no lost wake-up"), "");
  say(what::acquire_invoked, 2, 1, 1);
  grant(2, 1, 1);
  say(what::acquire_granted, 2, 1, 1, 11ms);
  EXPECT_NE(broken("no lost wake-up"), "");
}

TEST_F(checkers_test, who_waits_for_its_own_client_which_the_server_forgot_is_not_kept_waiting) {
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

TEST_F(checkers_test, who_overtakes_in_a_fair_line_is_seen) {
  say(what::server_queued, 1, 0);
  say(what::server_queued, 2, 0);
  grant(1, 0, 1);
  EXPECT_EQ(broken("FIFO"), "");
  say(what::server_queued, 3, 0);
  grant(3, 0, 2);
  EXPECT_NE(broken("FIFO"), "");
}

TEST_F(checkers_test, who_cannot_be_reached_may_be_passed_over) {
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
  say(what::belief_ended, 1, 0);
  say(what::lost_told, 1, 0);
  EXPECT_NE(broken("no leak"), "");
}

TEST_F(checkers_test, a_hold_with_a_lock_delay_that_was_lost_with_its_notice_runs_out_by_itself) {
  say(what::attempt_sent, 1, 0, 0, 10s);
  record line = about(1, 0);
  line.kind = what::acquire_granted;
  line.shut = 5s;
  add(1ms, line);
  line.kind = what::belief_ended;
  line.until = loop.now() + 3s;  // the notice
  add(1ms, line);
  say(what::release_invoked, 1, 0);  // before it was told
  EXPECT_EQ(broken("no leak"), "");
}

TEST_F(checkers_test, who_waits_for_itself_is_seen) {
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

}  // namespace holdfast::sim
