// Virtual time: order, pauses, clocks.
#include "sim/event_loop.hpp"

#include "sim/sim_runtime.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::sim {

using namespace std::chrono_literals;

class event_loop_test : public ::testing::Test {
 protected:
  void at(duration when, const std::string& what, event_class kind = event_class::timer) {
    loop.at(when, machine, kind, [this, what] { seen += what; });
  }
  void run() {
    while (loop.step(1h)) {
    }
  }

  event_loop loop;
  node machine{node_clock{}};
  node outside{node_clock{}};
  std::string seen;
};

// If this fails, a world's events are in no certain order, and no seed can be replayed.
TEST_F(event_loop_test, events_run_by_time_and_then_in_the_order_they_were_made) {
  at(2s, "c");
  at(1s, "a");
  at(2s, "d");
  at(1s, "b");
  run();
  EXPECT_EQ(seen, "abcd");
  EXPECT_EQ(loop.now(), 2s);
}

TEST_F(event_loop_test, a_cancelled_event_does_not_run_and_is_not_pending) {
  const auto id = loop.at(1s, machine, event_class::timer, [this] { seen += "x"; });
  EXPECT_EQ(loop.pending(machine), 1U);
  loop.cancel(id);
  loop.cancel(id);
  EXPECT_EQ(loop.pending(machine), 0U);
  run();
  EXPECT_EQ(seen, "");
}

// If this fails, a reused slot is cancelled by its previous owner.
TEST_F(event_loop_test, an_old_id_does_not_cancel_a_new_event) {
  const auto old = loop.at(1s, machine, event_class::timer, [] {});
  run();
  at(2s, "a");
  loop.cancel(old);
  run();
  EXPECT_EQ(seen, "a");
}

TEST_F(event_loop_test, a_paused_machine_does_everything_late_and_in_order) {
  loop.pause(machine);
  at(1s, "a");
  at(2s, "b");
  loop.at(3s, outside, event_class::timer,
          [this] { loop.resume(machine, resume_order::as_it_came); });
  run();
  EXPECT_EQ(seen, "ab");
  EXPECT_EQ(loop.now(), 3s);
}

TEST_F(event_loop_test, timers_or_messages_may_come_first_after_a_pause) {
  for (const resume_order order : {resume_order::timers_first, resume_order::receipts_first}) {
    seen.clear();
    loop.pause(machine);
    at(loop.now() + 1s, "m", event_class::receipt);
    at(loop.now() + 2s, "t");
    at(loop.now() + 3s, "n", event_class::receipt);
    loop.at(loop.now() + 4s, outside, event_class::timer,
            [this, order] { loop.resume(machine, order); });
    run();
    EXPECT_EQ(seen, order == resume_order::timers_first ? "tmn" : "mnt");
  }
}

TEST_F(event_loop_test, what_is_cancelled_during_a_pause_does_not_run_after_it) {
  loop.pause(machine);
  const auto id = loop.at(1s, machine, event_class::timer, [this] { seen += "x"; });
  loop.at(2s, outside, event_class::timer, [this, id] { loop.cancel(id); });
  loop.at(3s, outside, event_class::timer,
          [this] { loop.resume(machine, resume_order::as_it_came); });
  run();
  EXPECT_EQ(seen, "");
}

// If this fails, a timer may find that its time has not come: the engine would spin.
TEST(node_clock_test, a_timer_finds_that_its_time_has_come) {
  for (const std::int64_t rate : {-4500, -1, 0, 1, 4500}) {
    const node_clock clock(77s, rate);
    for (std::int64_t i = 0; i < 3000; ++i) {
      const duration reading = 77s + duration(i * 3'333'331);
      const moment when = clock.when(reading);
      EXPECT_GE(clock.shows(when), reading);
      EXPECT_LT(clock.shows(when - duration(2)), reading);
    }
  }
}

TEST(node_clock_test, a_clock_never_goes_back) {
  const node_clock clock(1s, -4500);
  duration last = clock.shows(0s);
  for (moment now{0}; now < 3us; now += duration(1)) {
    EXPECT_GE(clock.shows(now), last);
    last = clock.shows(now);
  }
}

TEST(node_clock_test, rates_are_what_they_are_called) {
  EXPECT_EQ(node_clock(0s, 4500).shows(1000s), 1004500ms);
  EXPECT_EQ(node_clock(0s, -4500).shows(1000s), 995500ms);
}

}  // namespace holdfast::sim
