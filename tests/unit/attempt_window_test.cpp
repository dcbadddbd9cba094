// The attempt window: how many attempts are in flight at once, which go first, and what happens to
// those that wait. Time is moved by hand.
#include "core/attempt_window.hpp"

#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

core::engine_settings with_window(std::size_t first, std::size_t least = 1) {
  core::engine_settings settings;
  settings.limit.window_first = first;
  settings.limit.window_least = least;
  return settings;
}

core::request short_request(const std::string& name, duration ttl, duration wait = forever) {
  auto request = request_for(name, wait);
  request.lock.ttl = ttl;
  return request;
}

core::request shared_request(const std::string& name, duration wait = forever) {
  auto request = request_for(name, wait);
  request.mode = spi::mode::shared;
  return request;
}

TEST(attempt_window, what_does_not_fit_waits_unsent_and_follows_in_order) {
  // Broken: a client's own burst fills the engine's queue, or overtakes itself.
  engine_bench bench(with_window(2));
  std::vector<question_ptr> all;
  for (const char* name : {"a", "b", "c", "d"}) all.push_back(bench.ask(name));
  EXPECT_EQ(bench.store->take_log(), "attempt a, attempt b");
  bench.grant(1);
  EXPECT_EQ(bench.store->take_log().substr(0, 9), "attempt c");
  while (bench.grant(2)) {
  }
  for (const auto& each : all) EXPECT_EQ(each->state().substr(0, 7), "granted");
}

TEST(attempt_window, claims_of_one_name_keep_their_order) {
  // Broken: of two readers of one name the later one is sent first.
  engine_bench bench(with_window(1));
  std::vector<question_ptr> all;
  for (int i = 0; i < 4; ++i) all.push_back(bench.ask(shared_request("stock")));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i]->answered());
    ASSERT_TRUE(bench.grant(i + 1));
    EXPECT_EQ(all[i]->state(), "granted " + std::to_string(i + 1));
  }
}

TEST(attempt_window, one_that_is_answered_blocked_makes_room) {
  // Broken: waiters in the engine's queue fill the window, and ten thousand of them block a client.
  engine_bench bench(with_window(1));
  const auto waits = bench.ask("stock");
  const auto other = bench.ask("price");
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.grant(7);
  EXPECT_EQ(waits->state(), "waiting");
  EXPECT_EQ(other->state(), "granted 7");
}

TEST(attempt_window, a_deadline_begins_when_it_is_sent) {
  // Broken: what waited in the client is sent with no time left, and its answer is discarded.
  engine_bench bench(with_window(1));
  const auto first = bench.ask("a");
  const auto second = bench.ask("b");
  bench.runtime->run_for(1s);
  bench.grant(1);
  ASSERT_EQ(bench.store->attempts.size(), 1U);
  EXPECT_EQ(bench.store->attempts.front().context.deadline, bench.runtime->now() + 5s);
  bench.grant(2);
  EXPECT_GT(second->granted->valid_until(), bench.runtime->now() + 29s);
}

TEST(attempt_window, a_cancelled_one_is_answered_at_once_and_nothing_is_sent_for_it) {
  // Broken: giving up sends a withdrawal of what was never requested, or waits for its turn.
  engine_bench bench(with_window(1));
  const auto first = bench.ask("a");
  const auto second = bench.ask("b");
  bench.store->take_log();
  second->handle->cancel();
  EXPECT_EQ(second->state(), "cancelled");
  bench.grant(1);
  bench.runtime->run_for(3s);
  EXPECT_EQ(bench.store->take_log(), "");
  EXPECT_EQ(bench.engine->live_claims(), 1U);
}

TEST(attempt_window, a_wait_that_ends_there_was_refused_as_overloaded) {
  // Broken: "held by another", or "no answer", for what was never sent.
  engine_bench bench(with_window(1));
  std::vector<question_ptr> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(bench.ask(short_request("s" + std::to_string(i), 30s, 2s)));
  // One answer each 100 ms: the engine is at work.
  for (int i = 0; i < 30; ++i) {
    bench.runtime->run_for(100ms);
    bench.grant(static_cast<std::uint64_t>(i) + 1);
  }
  EXPECT_EQ(all.front()->state(), "granted 1");
  EXPECT_EQ(all.back()->state(), "overloaded");
}

TEST(attempt_window, beside_a_silent_engine_a_wait_ends_as_unavailable) {
  // Broken: an outage is taken for a burst.
  engine_bench bench(with_window(1));
  const auto first = bench.ask("a", 4s);
  const auto second = bench.ask("b", 4s);
  bench.runtime->run_for(5s);
  EXPECT_EQ(first->state(), "unavailable");
  EXPECT_EQ(second->state(), "unavailable");
}

TEST(attempt_window, a_try_does_not_hang_there) {
  // Broken: a call that must not wait waits forever behind a burst.
  core::engine_settings settings = with_window(1);
  settings.limit.window_most = 1;
  engine_bench narrow(settings);
  const auto first = narrow.ask("a");
  const auto tried = narrow.ask("b", 0s);
  EXPECT_EQ(tried->state(), "waiting");
  narrow.runtime->run_for(1s);
  narrow.grant(1);
  EXPECT_EQ(narrow.store->attempts.size(), 1U);  // its turn
  const auto second = narrow.ask("c", 0s);
  narrow.runtime->run_for(6s);
  EXPECT_TRUE(second->answered() || narrow.store->attempts.size() == 2U);
}

TEST(attempt_window, a_silent_server_of_many_does_not_hold_up_the_others) {
  // Broken: attempts to one dead shard delay those to all others until their deadline.
  engine_bench bench(with_window(2));
  std::vector<question_ptr> all;
  for (int i = 0; i < 6; ++i) all.push_back(bench.ask("s" + std::to_string(i)));
  EXPECT_EQ(bench.store->attempts.size(), 2U);
  bench.runtime->run_for(4s);  // less than the deadline of a command
  EXPECT_GT(bench.store->attempts.size(), 2U);
}

TEST(attempt_window, it_is_halved_by_slow_answers_and_grows_with_fast_ones) {
  // Broken: the window does not follow the engine.
  engine_bench bench(with_window(8));
  std::vector<question_ptr> all;
  for (int i = 0; i < 400; ++i) all.push_back(bench.ask("s" + std::to_string(i)));
  for (int i = 0; i < 20; ++i) {
    bench.runtime->run_for(1ms);
    bench.grant(1);
  }
  const std::size_t grown = bench.engine->window().size();
  EXPECT_GT(grown, 8U);
  bench.runtime->run_for(2s);
  bench.grant(1);
  const std::size_t halved = bench.engine->window().size();
  EXPECT_LE(halved, grown / 2);
  while (bench.grant(1)) bench.runtime->run_for(1ms);
  for (const auto& each : all) EXPECT_EQ(each->state(), "granted 1");
}

TEST(attempt_window, what_renewals_take_is_taken_from_new_claims) {
  // Broken: a client takes more locks than its engine can renew, and loses all of them.
  core::engine_settings settings = with_window(8);
  settings.limit.many_renewals = 1;
  engine_bench bench(settings);
  const auto held = bench.ask(short_request("held", 3s));
  bench.grant(1, 3s);
  bench.runtime->run_for(1s);
  ASSERT_EQ(bench.store->renewals.size(), 1U);
  bench.runtime->run_for(600ms);  // more than a third of its second
  bench.store->answer_renewal(std::vector<spi::renewal>{renewed(1, 3s)});
  const auto next = bench.ask(short_request("next", 3s));
  bench.runtime->run_for(350ms);  // the next renewal
  EXPECT_TRUE(bench.store->attempts.empty());
  bench.runtime->run_for(200ms);
  EXPECT_TRUE(bench.store->answer_renewal(std::vector<spi::renewal>{renewed(1, 3s)}));
  EXPECT_TRUE(bench.store->attempts.empty());
  bench.runtime->run_for(300ms);
  EXPECT_TRUE(bench.grant(2, 3s));
  EXPECT_EQ(next->state(), "granted 2");
  EXPECT_TRUE(held->granted->valid());
}

TEST(attempt_window, renewals_without_an_answer_stop_new_claims) {
  // Broken: while an engine is too slow to renew what a client holds, the client asks it for more.
  core::engine_settings settings = with_window(8);
  settings.limit.many_renewals = 1;
  engine_bench bench(settings);
  const auto held = bench.ask(short_request("held", 3s));
  bench.grant(1, 3s);
  bench.runtime->run_for(1s);
  ASSERT_EQ(bench.store->renewals.size(), 1U);
  bench.runtime->run_for(300ms);  // more than a quarter of its second
  const auto next = bench.ask(short_request("next", 3s));
  EXPECT_TRUE(bench.store->attempts.empty());
  bench.store->answer_renewal(std::vector<spi::renewal>{renewed(1, 3s)});
  bench.runtime->run_for(400ms);
  EXPECT_EQ(bench.store->attempts.size(), 1U);
}

TEST(attempt_window, renewals_are_not_limited_and_releases_go_first) {
  // Broken: a lease is lost, or not released, because the same client asks for others.
  engine_bench bench(with_window(1));
  const auto held = bench.ask(short_request("held", 3s));
  bench.grant(1, 3s);
  const auto given = bench.ask(short_request("given", 3s));
  bench.grant(2, 3s);
  const auto stuck = bench.ask("stuck");
  const auto behind = bench.ask("behind");
  bench.release(*given);
  bench.runtime->run_for(1s);
  EXPECT_EQ(bench.store->leaves.size(), 1U);
  EXPECT_EQ(bench.store->renewals.size(), 1U);
}

// An engine that answers one request after another, each in its time, regardless of the kind.
class slow_server {
 public:
  slow_server(engine_bench& bench, duration attempt, duration renewal)
      : bench_(bench), attempt_(attempt), renewal_(renewal) {}

  // Lets time pass. Requests are served in the order in which they came.
  void run_for(duration span) {
    const time_point end = bench_.runtime->now() + span;
    while (bench_.runtime->now() < end) {
      const bool renewal = !bench_.store->renewals.empty() && behind_ <= 0;
      if (renewal) {
        bench_.runtime->run_for(renewal_ *
                                static_cast<int>(bench_.store->renewals.front().claims.size()));
        answer_renewal();
      } else if (!bench_.store->attempts.empty()) {
        if (bench_.store->renewals.empty())
          behind_ = static_cast<long>(bench_.store->attempts.size());
        bench_.runtime->run_for(attempt_);
        --behind_;
        answer_attempt();
      } else {
        behind_ = 0;
        bench_.runtime->run_for(1ms);
      }
    }
  }

 private:
  // An answer after the deadline does not count.
  void answer_attempt() {
    const auto& next = bench_.store->attempts.front();
    if (next.context.deadline <= bench_.runtime->now()) {
      bench_.store->answer_attempt(no_answer<spi::outcome>());
    } else {
      bench_.grant(++fence_, next.claim->ttl);
    }
  }
  void answer_renewal() {
    if (bench_.store->renewals.empty()) return;
    const auto& next = bench_.store->renewals.front();
    std::vector<spi::renewal> answers;
    for (const auto& claim : next.claims) answers.push_back(renewed(1, claim->ttl));
    if (next.context.deadline <= bench_.runtime->now()) answers.clear();
    bench_.store->answer_renewal(answers);
  }

  engine_bench& bench_;
  const duration attempt_;
  const duration renewal_;
  long behind_ = 0;  // attempts queued before the renewals
  std::uint64_t fence_ = 0;
};

TEST(attempt_window, a_burst_loses_no_lease_it_was_granted) {
  // Broken: 3,000 locks asked for at once from an engine that grants 500 a second are all lost.
  engine_bench bench;
  slow_server server(bench, 2ms, 20us);
  std::vector<question_ptr> all;
  for (int i = 0; i < 3'000; ++i) {
    all.push_back(bench.ask(short_request("s" + std::to_string(i), 3s, 30s)));
  }
  server.run_for(40s);
  std::size_t granted = 0;
  for (const auto& each : all) {
    ASSERT_TRUE(each->answered());
    if (!each->granted) continue;
    ++granted;
    ASSERT_TRUE(each->granted->valid());
  }
  EXPECT_EQ(granted, all.size());
  EXPECT_EQ(bench.events->count(event_kind::lost), 0U);
}

TEST(attempt_window, more_than_the_engine_can_renew_is_refused_and_nothing_is_lost) {
  // Broken: a client is granted more than it can keep.
  engine_bench bench;
  slow_server server(bench, 1ms, 500us);  // renews 2,000 in a second: a third of a lease
  std::vector<question_ptr> all;
  for (int i = 0; i < 6'000; ++i) {
    all.push_back(bench.ask(short_request("s" + std::to_string(i), 3s, 20s)));
  }
  server.run_for(30s);
  EXPECT_EQ(bench.events->count(event_kind::lost), 0U);
  std::size_t granted = 0;
  for (const auto& each : all) {
    ASSERT_TRUE(each->answered());
    if (each->granted) ++granted;
  }
  EXPECT_GT(granted, 300U);
  EXPECT_LT(granted, 2'000U);
  EXPECT_EQ(all.back()->state(), "overloaded");
}

TEST(ttl_census, knows_the_shortest_of_the_living) {
  // Broken: the window is as wide as a lease of a day allows, although there is one of a second.
  core::ttl_census census;
  EXPECT_EQ(census.shortest(), duration::max());
  census.add(30s);
  census.add(100ms);
  census.add(24h);
  EXPECT_LE(census.shortest(), 100ms);
  EXPECT_GE(census.shortest(), 80ms);
  census.remove(100ms);
  EXPECT_LE(census.shortest(), 30s);
  EXPECT_GE(census.shortest(), 24s);
  census.remove(30s);
  EXPECT_GE(census.shortest(), 19h);
  census.remove(24h);
  EXPECT_EQ(census.shortest(), duration::max());
}

}  // namespace
}  // namespace holdfast::test
