// Events: what happens to a lock is reported to the observer, once each, in order, outside the
// engine's critical path.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace holdfast::test {
namespace {

class engine_events : public ::testing::Test {
 protected:
  engine_bench bench;

  std::string events() {
    bench.runtime->run_ready();
    return bench.events->take();
  }
};

TEST_F(engine_events, the_life_of_a_lease) {
  // Broken: metrics count grants or releases twice, or not at all.
  auto holder = bench.ask();
  bench.runtime->run_for(3s);
  bench.grant(1);
  EXPECT_EQ(events(), "granted stock");
  EXPECT_EQ(bench.events->took.back(), 3s);  // how long it was waited for
  bench.runtime->run_for(10s);
  bench.store->answer_renewal(std::vector{renewed(1)});
  EXPECT_EQ(events(), "renewed stock");
  holder->granted.reset();
  EXPECT_EQ(events(), "released stock");
  EXPECT_EQ(bench.events->took.back(), 10s);  // how long it was held
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(events(), "");
}

TEST_F(engine_events, a_wait_that_was_for_nothing) {
  // Broken: contention and outage are one number.
  bench.ask("stock", 0s);
  bench.store->answer_attempt(blocked_outside());
  EXPECT_EQ(events(), "busy stock: busy");
  const auto slow = bench.ask("stock", 1ms);
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.runtime->run_for(1ms);
  EXPECT_EQ(events(), "busy stock: timed out");
  bench.ask("other", 0s);
  bench.store->answer_attempt(no_answer<spi::outcome>());
  EXPECT_EQ(events(), "failed other: unavailable");
  const auto cancelled = bench.ask("third");
  cancelled->handle->cancel();
  EXPECT_EQ(events(), "failed third: cancelled");
}

TEST_F(engine_events, a_loss_says_how) {
  // Broken: nobody can tell a forced release from a dead network.
  const auto forced = bench.ask("forced");
  bench.grant(1);
  events();
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  EXPECT_EQ(events(), "lost forced: lost");
  const auto silent = bench.ask("silent");
  bench.grant(2);
  events();
  bench.runtime->run_for(40s);
  EXPECT_EQ(events(), "lost silent: lost");
}

TEST_F(engine_events, a_renewal_that_failed) {
  // Broken: an outage is seen only when locks are lost.
  const auto holder = bench.ask();
  bench.grant(1);
  events();
  bench.runtime->run_for(10s);
  bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>());
  EXPECT_EQ(events(), "renewal_failed stock: unavailable");
}

TEST_F(engine_events, an_engine_that_cannot_be_reached_and_is_back) {
  // Broken: a caller that waits for an unreachable engine leaves no trace.
  const auto asked = bench.ask();
  const error refused{errc::unavailable, "connect: Connection refused", true};
  bench.store->answer_attempt(tl::unexpected(refused));
  bench.runtime->run_ready();
  EXPECT_EQ(events(), "engine_unreachable : unavailable");
  bench.runtime->run_for(100ms);
  bench.store->answer_attempt(tl::unexpected(refused));
  bench.runtime->run_for(200ms);
  EXPECT_EQ(events(), "");
  bench.grant(1);
  EXPECT_EQ(events(), "engine_back , granted stock");
}

TEST_F(engine_events, a_release_that_nobody_heard) {
  // Broken: locks that stay blocked until their ttl have no trace.
  auto holder = bench.ask();
  bench.grant(1);
  events();
  holder->granted.reset();
  bench.store->answer_leave(no_answer<spi::departure>());
  EXPECT_EQ(events(), "released stock, release_pending stock");
  while (bench.engine->live_claims() > 0) {
    bench.runtime->run_for(1s);
    bench.store->answer_leave(no_answer<spi::departure>());
  }
  EXPECT_EQ(events(), "release_abandoned stock");
}

TEST_F(engine_events, a_hand_over) {
  // Broken: local hand-overs are invisible.
  auto first = bench.ask();
  bench.grant(1);
  const auto second = bench.ask();
  events();
  first->granted.reset();
  EXPECT_EQ(events(), "released stock, handed_over stock, granted stock");
}

TEST_F(engine_events, are_notified_off_the_engines_path) {
  // Broken: a slow observer holds up grants.
  bench.runtime->hold_notifications(true);
  const auto holder = bench.ask();
  bench.grant(1);
  EXPECT_EQ(holder->state(), "granted 1");
  EXPECT_EQ(bench.runtime->notifications(), 1U);
  EXPECT_TRUE(bench.events->lines.empty());
  bench.runtime->hold_notifications(false);
}

TEST(engine_unobserved, nothing_is_posted_for_nobody) {
  // Broken: a client without an observer pays for events.
  const auto runtime = std::make_shared<manual_runtime>();
  const auto store = std::make_shared<fake_store>();
  const auto engine = std::make_shared<core::engine>(runtime, store, core::engine_settings{});
  std::shared_ptr<core::hold> lease;
  engine->acquire(request_for("stock"), [&lease](result<std::shared_ptr<core::hold>> answer) {
    lease = std::move(*answer);
  });
  store->answer_attempt(granted(1));
  ASSERT_NE(lease, nullptr);
  lease.reset();
  store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(runtime->notifications(), 0U);
  store->close();
}

TEST(event_names, every_kind_has_one_of_its_own) {
  // Broken: a metric without a label, or two with the same.
  std::vector<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(event_kind::callback_threw); ++kind) {
    names.push_back(to_string(static_cast<event_kind>(kind)));
    EXPECT_NE(names.back(), "unknown");
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace holdfast::test
