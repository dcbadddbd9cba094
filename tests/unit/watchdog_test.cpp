// The watchdog: renewals in batches, whatever was answered before, and none for what was released.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

// Bypasses the local queue, so that every request is a claim of its own.
core::request shared_request(const std::string& name, duration ttl = 30s) {
  auto request = request_for(name);
  request.mode = spi::mode::shared;
  request.lock.ttl = ttl;
  return request;
}

class watchdog : public ::testing::Test {
 protected:
  engine_bench bench;

  std::string log() { return bench.store->take_log(); }
  question_ptr held(const std::string& name, duration ttl = 30s) {
    auto asked = bench.ask(shared_request(name, ttl));
    bench.grant(++last_fence, ttl);
    return asked;
  }
  // Not renewed.
  question_ptr held_once(const std::string& name) {
    auto request = request_for(name);
    request.lock.renew = renew::never;
    auto asked = bench.ask(std::move(request));
    bench.grant(++last_fence);
    return asked;
  }
  // The oldest batch is answered as if all were renewed.
  void renew_all() {
    ASSERT_FALSE(bench.store->renewals.empty());
    std::vector<spi::renewal> answers;
    for (const auto& claim : bench.store->renewals.front().claims) {
      answers.push_back(renewed(1, claim->ttl));
    }
    bench.store->answer_renewal(answers);
  }

  std::uint64_t last_fence = 0;
};

TEST_F(watchdog, leases_of_one_moment_are_renewed_by_one_request) {
  // Broken: ten thousand leases cost ten thousand requests every ten seconds.
  std::vector<question_ptr> all;
  for (int i = 0; i < 20; ++i) all.push_back(held("stock" + std::to_string(i)));
  log();
  bench.runtime->run_for(10s);
  std::size_t renewed_claims = 0;
  for (const auto& batch : bench.store->renewals) renewed_claims += batch.claims.size();
  EXPECT_EQ(renewed_claims, 20U);
  EXPECT_LE(bench.store->renewals.size(), 7U);  // jitter spreads them over a second, 200 ms a batch
}

TEST_F(watchdog, a_batch_has_a_limit) {
  // Broken: one request carries a million claims and blocks the server.
  core::engine_settings settings;
  settings.limit.renewal_batch = 3;
  settings.limit.renewal_slack = 5s;
  engine_bench small(settings);
  std::vector<question_ptr> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(small.ask(shared_request("stock")));
    small.grant(static_cast<std::uint64_t>(i + 1));
  }
  small.store->take_log();
  small.runtime->run_for(10s);
  ASSERT_EQ(small.store->renewals.size(), 3U);
  EXPECT_EQ(small.store->renewals[0].claims.size(), 3U);
  EXPECT_EQ(small.store->renewals[1].claims.size(), 3U);
  EXPECT_EQ(small.store->renewals[2].claims.size(), 2U);
}

TEST_F(watchdog, a_short_lease_does_not_wait_for_the_answer_of_a_long_one) {
  // Broken: with one deadline for all, a lease of a second has lost before the batch fails.
  core::engine_settings settings;
  settings.limit.renewal_slack = 60s;  // all go together
  engine_bench mixed(settings);
  const auto lasting = mixed.ask(shared_request("long", 60s));
  mixed.grant(1, 60s);
  const auto brief = mixed.ask(shared_request("short", 600ms));
  mixed.grant(2, 600ms);
  mixed.runtime->run_for(200ms);
  ASSERT_EQ(mixed.store->renewals.size(), 2U);
  for (const auto& batch : mixed.store->renewals) {
    const duration limit = batch.context.deadline - mixed.runtime->now();
    EXPECT_LE(limit, batch.claims.front()->ttl / 3);
  }
}

TEST_F(watchdog, an_offer_is_taken_up_with_a_third_of_the_offer_as_deadline) {
  // Broken: one lost packet costs every pushed grant, since its deadline is longer than the offer.
  const auto asked = bench.ask();
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.store->wakeup_of("a").notify(offer(5, 0s));
  bench.runtime->run_for(700ms);
  ASSERT_EQ(bench.store->renewals.size(), 1U);
  EXPECT_LE(bench.store->renewals.front().context.deadline, bench.runtime->now() + 2000ms / 3);
  bench.runtime->run_until(bench.store->renewals.front().context.deadline);
  bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>());
  bench.runtime->run_for(100ms);
  ASSERT_EQ(bench.store->renewals.size(), 1U) << "a second chance within the offer";
  bench.store->answer_renewal(std::vector{renewed(5)});
  bench.runtime->run_for(5s);
  EXPECT_TRUE(asked->granted->valid());
}

TEST_F(watchdog, it_goes_on_after_batches_that_were_not_answered) {
  // Broken: after a disconnect nothing is renewed any more (redisson#3194).
  const auto lease = held("stock");
  bench.runtime->run_for(10s);
  ASSERT_TRUE(bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>()));
  bench.runtime->run_for(1s);
  ASSERT_TRUE(bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>()));
  bench.runtime->run_for(1s);
  ASSERT_FALSE(bench.store->renewals.empty());
  renew_all();
  bench.runtime->run_for(20s);
  EXPECT_TRUE(lease->granted->valid());
}

TEST_F(watchdog, locks_taken_after_an_outage_are_renewed_too) {
  // Broken: the renewal loop, edge-triggered, never starts again.
  auto before = held("before");
  bench.runtime->run_for(10s);
  bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>());
  bench.store->wakeup_of("a").gone({errc::lost, "session expired"});
  const auto later = held("later");
  log();
  bench.runtime->run_for(10s);
  EXPECT_EQ(log(), "renew b");
}

TEST_F(watchdog, an_answer_that_is_too_short_is_no_answer_for_the_rest) {
  // Broken: an answer of a broken engine is read beyond its end, or taken as loss.
  core::engine_settings settings;
  settings.limit.renewal_slack = 5s;
  engine_bench pair(settings);
  const auto one = pair.ask(shared_request("one"));
  pair.grant(1);
  const auto two = pair.ask(shared_request("two"));
  pair.grant(2);
  pair.runtime->run_for(10s);
  ASSERT_EQ(pair.store->renewals.front().claims.size(), 2U);
  pair.store->answer_renewal(std::vector{renewed(1)});
  EXPECT_GT(one->granted->valid_until(), at(35s));
  EXPECT_LT(two->granted->valid_until(), at(30s));
  EXPECT_TRUE(two->granted->valid());
}

TEST_F(watchdog, a_claim_released_after_it_was_collected_is_not_sent) {
  // Broken: the batch is put together, a callback releases, and a lock that nobody holds is
  // prolonged.
  auto lease = held("stock");
  const auto in_the_way = bench.ask("other");
  bench.grant(9);
  // Times out in the sweep in which the lease becomes due, after it, and then releases the lease.
  bench.engine->acquire(request_for("other", 10'500ms), [&lease](const auto& answer) {
    EXPECT_EQ(answer.error(), errc::timed_out);
    lease->granted.reset();
  });
  log();
  bench.runtime->pause_for(11s);
  bench.runtime->run_ready();
  EXPECT_EQ(log(), "leave a, renew b");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(bench.engine->live_claims(), 1U);
}

TEST_F(watchdog, waiters_keep_their_place_by_the_same_batch) {
  // Broken: each waiter of a process costs a request per second.
  std::vector<question_ptr> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(bench.ask(shared_request("stock" + std::to_string(i))));
    bench.store->answer_attempt(blocked_in_line(0s));
  }
  log();
  bench.runtime->run_for(1s);
  EXPECT_EQ(log(), "renew a b c d e f g h i j");
}

TEST_F(watchdog, a_claim_is_looked_after_before_it_is_asked_for) {
  // Broken: a renewal that the acquire's answer registers comes after unlock's cancel and stays
  // forever (redisson#7272).
  bench.ask();
  EXPECT_EQ(bench.store->attempts.size(), 1U);
  EXPECT_EQ(bench.engine->live_claims(), 1U);  // and nothing was answered yet
}

TEST_F(watchdog, no_renewal_outlives_its_lease_however_it_ends) {
  // Broken: cancelled waiters and released leases leave live watchdogs (redisson#4368, PR 7251).
  std::vector<question_ptr> leases;
  for (int i = 0; i < 5; ++i) leases.push_back(held("stock"));
  const auto cancelled = bench.ask(shared_request("stock"));
  cancelled->handle->cancel();
  bench.grant(99);  // the engine's late answer
  leases.clear();
  while (bench.store->answer_leave(spi::departure::was_holder)) {
  }
  EXPECT_EQ(bench.engine->live_claims(), 0U);
  log();
  bench.runtime->run_for(120s);
  EXPECT_EQ(log(), "");
}

TEST_F(watchdog, slow_callbacks_delay_neither_renewal_nor_loss) {
  // Broken: one lease's stop callback starves the renewals of all (redisson#2665).
  bench.runtime->hold_notifications(true);
  const auto renewed_lease = held("renewed");
  const auto lost_lease = held("lost");
  const std::stop_token lost = lost_lease->granted->lost();
  for (int third = 0; third < 4; ++third) {
    bench.runtime->run_for(9s);
    while (!bench.store->renewals.empty()) {
      std::vector<spi::renewal> answers;
      for (const auto& claim : bench.store->renewals.front().claims) {
        answers.push_back(claim->resource.name == "lost" ? no_renewal() : renewed(1));
      }
      bench.store->answer_renewal(answers);
    }
  }
  EXPECT_TRUE(renewed_lease->granted->valid());
  EXPECT_FALSE(lost_lease->granted->valid());  // by the clock, although nobody could be notified
  EXPECT_FALSE(lost.stop_requested());
  bench.runtime->hold_notifications(false);
  bench.runtime->run_ready();
  EXPECT_TRUE(lost.stop_requested());
}

TEST_F(watchdog, a_lock_is_not_given_back_before_lost_has_fired) {
  // Broken: the next holder is at work, and the token of the former one says nothing yet.
  const auto asked = held_once("stock");
  const std::stop_token lost = asked->granted->lost();
  bench.runtime->hold_notifications(true);
  bench.runtime->run_for(30s);
  EXPECT_FALSE(asked->granted->valid());
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(log(), "attempt a");
  bench.runtime->hold_notifications(false);
  bench.runtime->run_ready();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(bench.engine->live_claims(), 0U);
}

TEST_F(watchdog, a_lock_is_given_back_after_a_ttl_though_a_callback_keeps_the_notifier) {
  // Broken: where holds do not end by time, a callback that waits for the lock itself waits forever.
  const auto asked = held_once("stock");
  const std::stop_token lost = asked->granted->lost();
  bench.runtime->hold_notifications(true);
  bench.runtime->run_for(61s);
  EXPECT_FALSE(lost.stop_requested());
  EXPECT_EQ(log(), "attempt a, leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  bench.runtime->hold_notifications(false);
  bench.runtime->run_ready();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(log(), "");
}

TEST_F(watchdog, a_client_that_closes_gives_back_in_time_though_a_callback_keeps_the_notifier) {
  // Broken: every lock of the client stays blocked for a ttl.
  const auto asked = held("stock");
  const std::stop_token lost = asked->granted->lost();
  log();
  bench.runtime->hold_notifications(true);
  bool closed = false;
  core::engine::abandoned left;
  bench.engine->close(2s, [&](core::engine::abandoned names) {
    closed = true;
    left = std::move(names);
  });
  bench.runtime->run_for(1500ms);
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(left.empty());
  bench.runtime->hold_notifications(false);
  bench.runtime->run_ready();
  EXPECT_TRUE(lost.stop_requested());
}

TEST_F(watchdog, only_the_notifier_calls_what_waits_for_a_loss) {
  // Broken: the callback runs inside lost() or wanted(), on a thread that it may be about to join,
  // and under a mutex that it needs.
  const auto asked = held("stock");
  core::hold& hold = *asked->granted;
  int calls = 0;
  const auto called = [&] {
    ++calls;
    static_cast<void>(hold.lost());
  };
  const std::stop_callback on_loss(hold.lost(), called);
  const std::stop_callback on_wanted(hold.wanted(), called);
  bench.runtime->hold_notifications(true);
  bench.runtime->run_for(10s);
  spi::renewal wanted_by_others = renewed(1);
  wanted_by_others.grant.wanted = true;
  bench.store->answer_renewal(std::vector{wanted_by_others});
  bench.runtime->run_for(40s);
  EXPECT_FALSE(hold.valid());
  EXPECT_TRUE(hold.lost().stop_requested());
  EXPECT_TRUE(hold.wanted().stop_requested());
  EXPECT_EQ(calls, 0);
  bench.runtime->hold_notifications(false);
  bench.runtime->run_ready();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace holdfast::test
