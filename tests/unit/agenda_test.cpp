// The agenda: one timer for any number of items, and none is forgotten.
#include "core/agenda.hpp"

#include "support/manual_runtime.hpp"
#include "support/times.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace holdfast::test {
namespace {

using core::agenda;

// Records when it was called; schedules itself again if told to.
class note final : public core::agenda_item {
 public:
  void due(time_point now) override {
    calls.push_back(now);
    if (on_due) on_due();
  }
  void join(time_point, time_point) override { ++joins; }

  std::vector<time_point> calls;
  std::function<void()> on_due;
  int joins = 0;
};

class agenda_with_time : public ::testing::Test {
 protected:
  manual_runtime runtime;
  std::shared_ptr<agenda> list = std::make_shared<agenda>(runtime);
  std::shared_ptr<note> one = std::make_shared<note>();
  std::shared_ptr<note> two = std::make_shared<note>();
};

using times = std::vector<time_point>;

TEST_F(agenda_with_time, an_item_is_called_at_its_time_and_once) {
  // Broken: timers fire early, late, or twice.
  list->schedule(one, at(2s));
  runtime.run_until(at(2s - 1ns));
  EXPECT_TRUE(one->calls.empty());
  runtime.run_until(at(10s));
  EXPECT_EQ(one->calls, times{at(2s)});
  EXPECT_EQ(list->size(), 0U);
}

TEST_F(agenda_with_time, an_earlier_time_replaces_a_later_one) {
  // Broken: a claim that became due sooner is looked at only at its former time.
  list->schedule(one, at(20s));
  list->schedule(one, at(2s));
  runtime.run_until(at(30s));
  EXPECT_EQ(one->calls, times{at(2s)});
}

TEST_F(agenda_with_time, a_later_time_keeps_the_earlier_look) {
  // Broken: an item that asked to be looked at is forgotten because it asked once more.
  list->schedule(one, at(2s));
  list->schedule(one, at(20s));
  runtime.run_until(at(10s));
  EXPECT_EQ(one->calls, times{at(2s)});
}

TEST_F(agenda_with_time, an_item_may_ask_again_from_within) {
  // Broken: renewals stop after the first.
  one->on_due = [this] {
    if (one->calls.size() < 3) list->schedule(one, runtime.now() + 1s);
  };
  list->schedule(one, at(1s));
  runtime.run_until(at(10s));
  EXPECT_EQ(one->calls, (times{at(1s), at(2s), at(3s)}));
}

TEST_F(agenda_with_time, a_dropped_item_is_not_called_and_not_kept_alive) {
  // Broken: claims that have ended stay in memory.
  list->schedule(one, at(2s));
  list->schedule(two, at(3s));
  list->drop(*one);
  EXPECT_EQ(one.use_count(), 1);
  runtime.run_until(at(10s));
  EXPECT_TRUE(one->calls.empty());
  EXPECT_EQ(two->calls, times{at(3s)});
  list->drop(*one);  // once more: nothing
}

TEST_F(agenda_with_time, an_item_may_drop_another_that_is_due_in_the_same_moment) {
  // Broken: a crash, or an endless loop.
  one->on_due = [this] { list->drop(*two); };
  list->schedule(one, at(1s));
  list->schedule(two, at(1s));
  runtime.run_until(at(5s));
  EXPECT_EQ(one->calls.size(), 1U);
  EXPECT_LE(two->calls.size(), 1U);
}

TEST_F(agenda_with_time, thousands_of_items_share_one_timer) {
  // Broken: a timer of the runtime per lock.
  std::vector<std::shared_ptr<note>> many;
  for (int i = 0; i < 5000; ++i) {
    many.push_back(std::make_shared<note>());
    list->schedule(many.back(), at(5s) - std::chrono::milliseconds(i % 1000));
    ASSERT_LE(runtime.timers(), 1U);
  }
  runtime.run_until(at(5s));
  for (const auto& each : many) ASSERT_EQ(each->calls.size(), 1U);
}

TEST_F(agenda_with_time, timers_that_are_cancelled_too_late_do_not_multiply) {
  // Broken: each race between a timer and its cancellation adds a permanent timer.
  runtime.cancel_too_late(true);
  auto again = [this](const std::shared_ptr<note>& item) {
    item->on_due = [this, raw = std::weak_ptr(item)] {
      const auto self = raw.lock();
      list->schedule(self, runtime.now() + 2s);
      list->schedule(self, runtime.now() + 1s);  // earlier: the previous timer is cancelled
    };
    list->schedule(item, at(1s));
  };
  again(one);
  again(two);
  runtime.run_until(at(100s));
  EXPECT_LE(runtime.timers(), 5U);
  EXPECT_EQ(one->calls.size(), 100U);
  list->stop();
}

TEST_F(agenda_with_time, after_a_pause_everything_overdue_is_called_in_order) {
  // Broken: a process that was stopped has lost its timers.
  std::vector<int> order;
  one->on_due = [&order] { order.push_back(1); };
  two->on_due = [&order] { order.push_back(2); };
  list->schedule(two, at(3s));
  list->schedule(one, at(2s));
  runtime.pause_for(60s);
  runtime.run_ready();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(one->calls, times{at(60s)});
}

TEST_F(agenda_with_time, gathering_lets_near_items_join) {
  // Broken: renewals that are due a moment later each cost a request of their own.
  list->schedule(one, at(1s));
  list->schedule(two, at(9s));
  list->gather(at(900ms), at(1100ms));
  EXPECT_EQ(one->joins, 1);
  EXPECT_EQ(two->joins, 0);
  EXPECT_EQ(list->size(), 2U);
}

TEST_F(agenda_with_time, the_hook_runs_after_the_items_of_a_moment) {
  // Broken: a batch of renewals is sent before all that are due at that moment have joined it.
  std::vector<std::string> order;
  one->on_due = [&order] { order.push_back("one"); };
  two->on_due = [&order] { order.push_back("two"); };
  list->on_swept([&order] { order.push_back("swept"); });
  list->schedule(one, at(1s));
  list->schedule(two, at(1s));
  runtime.run_until(at(2s));
  EXPECT_EQ(order, (std::vector<std::string>{"one", "two", "swept"}));
}

TEST_F(agenda_with_time, once_stopped_nobody_is_called_or_kept) {
  // Broken: a closed client continues.
  list->schedule(one, at(1s));
  list->stop();
  list->schedule(two, at(1s));
  runtime.run_until(at(5s));
  EXPECT_TRUE(one->calls.empty());
  EXPECT_TRUE(two->calls.empty());
  EXPECT_EQ(one.use_count(), 1);
  EXPECT_EQ(list->size(), 0U);
}

TEST_F(agenda_with_time, a_timer_that_fires_after_the_agenda_ended_is_harmless) {
  // Broken: a crash while a client is destroyed.
  list->schedule(one, at(1s));
  list.reset();
  runtime.run_until(at(5s));
  EXPECT_TRUE(one->calls.empty());
}

TEST_F(agenda_with_time, never_is_not_listed) {
  // Broken: waits without a deadline fill the list.
  list->schedule(one, time_point::max());
  EXPECT_EQ(list->size(), 0U);
  EXPECT_EQ(runtime.timers(), 0U);
}

}  // namespace
}  // namespace holdfast::test
