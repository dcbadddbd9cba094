// degrade=local: what replaces an engine that does not answer, how it is visible, and how it ends.
#include "fault/degraded_harness.hpp"
#include "support/also_longer.hpp"

namespace holdfast::test {
namespace {

TEST(fallback_store, while_the_engine_is_gone_a_lock_of_this_process_stands_in_and_shows_it) {
  // Broken: a caller that asked to continue cannot, or does not know that it is only this process's
  // lock.
  degraded_harness world("degrade=local&breaker=2");
  world.cut_off();
  mutex stock(world.guarded(), "stock");
  auto lease = stock.acquire({.wait = 0s});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_TRUE(lease->degraded());
  EXPECT_EQ(lease->fence(), fence_token{}) << "no fence: a guard refuses it";
  EXPECT_TRUE(lease->valid());
  EXPECT_TRUE(world.seen().sees(event_kind::degraded));
  mutex same(world.guarded(), "stock", {.fair = true});  // not stopped at the client's local queue
  EXPECT_EQ(same.acquire({.wait = 0s}).error().code, errc::busy);
  EXPECT_TRUE(lease->release());
  auto next = same.acquire({.wait = 10s});
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_TRUE(next->degraded());
}

TEST(fallback_store, only_waiters_that_asked_for_it_are_degraded) {
  // Broken: a lock that protects nothing, by default.
  degraded_harness world("breaker=1");
  world.cut_off();
  EXPECT_EQ(mutex(world.guarded(), "stock").acquire({.wait = 0s}).error().code, errc::unavailable);
  EXPECT_TRUE(world.seen().all(event_kind::degraded).empty());
}

TEST(fallback_store, contention_is_never_degraded) {
  // Broken: a held lock is given to a second one because the first was slow.
  degraded_harness world("degrade=local&breaker=1");
  const client other = world.direct();
  auto held = mutex(other, "stock").acquire();
  ASSERT_TRUE(held);
  mutex stock(world.guarded(), "stock");
  EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::busy);
  EXPECT_EQ(stock.acquire({.wait = 20ms}).error().code, errc::timed_out);
  EXPECT_TRUE(world.seen().all(event_kind::degraded).empty());
}

TEST(fallback_store, one_unanswered_request_is_no_proof) {
  // Broken: a lost packet is enough to lock without the engine.
  degraded_harness world("degrade=local&breaker=3");
  mutex stock(world.guarded(), "stock");
  world.way().set(trouble::no_request, 2);
  const auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_FALSE(lease->degraded());
  EXPECT_GT(lease->fence(), fence_token{});
}

TEST(fallback_store, a_degraded_lease_is_lost_when_the_engine_is_back) {
  // Broken: beside the engine's holder another caller continues with a local lock.
  degraded_harness world("degrade=local&breaker=1");
  mutex stock(world.guarded(), "stock");
  const auto before = stock.acquire({.wait = 0s})->fence();
  world.cut_off();
  auto lease = stock.acquire({.wait = 10s});
  ASSERT_TRUE(lease) << lease.error().message();
  ASSERT_TRUE(lease->degraded());
  flag told;
  const std::stop_callback on_lost(lease->lost(), [&] { told.raise(); });
  world.restore();
  EXPECT_TRUE(told.wait());
  EXPECT_FALSE(lease->valid());
  EXPECT_EQ(lease->release().error().code, errc::lost);
  const auto real = stock.acquire({.wait = 10s});
  ASSERT_TRUE(real) << real.error().message();
  EXPECT_FALSE(real->degraded());
  EXPECT_GT(real->fence(), before);
}

TEST(fallback_store, a_degraded_lease_is_lost_though_nobody_observes_its_client) {
  // Broken: with the default options a degraded lease is renewed forever, beside the engine's holder.
  degraded_harness world("degrade=local&breaker=1", false);
  mutex stock(world.guarded(), "stock");
  world.way().set(trouble::no_request);
  std::optional<lease> held;
  ASSERT_TRUE(eventually([&] {
    auto got = stock.acquire({.wait = 0s});
    if (got && got->degraded()) held = std::move(*got);
    return held.has_value();
  }));
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  world.way().set(trouble::none);
  EXPECT_TRUE(told.wait());
  EXPECT_FALSE(held->valid());
}

TEST(fallback_store, a_waiter_at_the_local_fallback_is_granted_by_the_engine_when_it_is_back) {
  // Broken: a waiter is stuck at a lock that nobody uses any more.
  degraded_harness world("degrade=local&breaker=1");
  world.cut_off();
  mutex stock(world.guarded(), "stock", {.fair = true});
  auto holder = stock.acquire({.wait = 10s});
  ASSERT_TRUE(holder);
  auto waits = in_thread([&] { return stock.acquire({.wait = patience}); });
  EXPECT_FALSE(arrives(waits, 20ms));
  world.restore();
  const auto next = waits.get();
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_FALSE(next->degraded());
  EXPECT_FALSE(holder->valid());
  EXPECT_EQ(world.direct().inspect("stock")->holders.size(), 1U);
}

TEST(fallback_store, a_waiter_at_the_engine_waits_there_again_afterwards) {
  // Broken: an outage costs a waiter its claim, because its own clean-up blocks its return.
  degraded_harness world("degrade=local&breaker=1");
  const client other = world.direct();
  auto held = mutex(other, "stock").acquire();
  ASSERT_TRUE(held);
  mutex stock(world.guarded(), "stock", {.fair = true});
  auto waits = in_thread([&] { return stock.acquire({.wait = patience}); });
  ASSERT_TRUE(eventually([&] { return other.inspect("stock")->waiters.size() == 1; }));
  world.cut_off();
  // Before the waiter is looked at again; a client that tries while the outage is being confirmed
  // is told so.
  auto local = stock.acquire({.wait = 0s});
  ASSERT_TRUE(eventually([&] {
    if (!local && local.error() == errc::unavailable) local = stock.acquire({.wait = 0s});
    return local || local.error() != errc::unavailable;
  }));
  ASSERT_TRUE(local) << local.error().message();
  EXPECT_TRUE(local->degraded());
  EXPECT_FALSE(arrives(waits, 1500ms)) << "behind it, at the local fallback";
  world.restore();
  EXPECT_TRUE(eventually([&] { return !local->valid(); }));
  EXPECT_TRUE(held->valid());
  EXPECT_TRUE(held->release());
  const auto next = waits.get();
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_FALSE(next->degraded());
}

TEST(fallback_store, what_was_held_before_the_outage_stays_the_engines) {
  // Broken: an outage turns a real lease into a degraded one.
  degraded_harness world("degrade=local&breaker=1");
  mutex stock(world.guarded(), "stock", {.ttl = 20s});
  auto lease = stock.acquire({.wait = 0s});
  ASSERT_TRUE(lease);
  world.cut_off();
  EXPECT_TRUE(lease->valid());
  EXPECT_FALSE(lease->degraded());
  world.restore();
  EXPECT_TRUE(lease->valid());
  EXPECT_TRUE(lease->release());
}

TEST(fallback_store, what_the_engine_got_before_it_was_given_up_is_left_there_afterwards) {
  // Broken: a claim that moved to the local fallback keeps the real lock until its ttl ends.
  degraded_harness world("degrade=local&breaker=1");
  const client other = world.direct();
  mutex stock(world.guarded(), "stock", {.ttl = 600s});
  world.way().set(trouble::no_answer);  // done at the engine, and nobody learns it
  auto lease = stock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  ASSERT_TRUE(lease->degraded());
  EXPECT_TRUE(lease->release());
  EXPECT_EQ(other.inspect("stock")->holders.size(), 1U);
  world.restore();
  EXPECT_TRUE(eventually([&] { return other.inspect("stock")->holders.empty(); }));
}

TEST(fallback_store, renewals_of_both_kinds_travel_in_one_batch) {
  // Broken: a degraded lease runs out because the engine has never heard of it, or the reverse.
  degraded_harness world("degrade=local&breaker=1");
  mutex real(world.guarded(), "real", {.ttl = 120s});
  auto kept = real.acquire({.wait = 0s});
  ASSERT_TRUE(kept);
  world.cut_off();
  EXPECT_TRUE(also_longer(300ms, [&](duration ttl) {
    mutex local(world.guarded(), "local", {.ttl = ttl});
    auto degraded = local.acquire({.wait = 10s});
    if (!degraded) return testing::AssertionFailure() << degraded.error().message();
    const time_point first = degraded->valid_until();
    EXPECT_TRUE(
        eventually([&] { return degraded->valid_until() > first + ttl || !degraded->valid(); }));
    return degraded->valid() ? testing::AssertionSuccess() : testing::AssertionFailure() << "lost";
  }));
  EXPECT_TRUE(kept->valid());
}

TEST(fallback_store, threads_count_exactly_under_the_local_fallback) {
  // Broken: the local fallback does not even keep the threads of this process apart.
  degraded_harness world("degrade=local&breaker=1");
  world.cut_off();
  mutex stock(world.guarded(), "stock", {.fair = true});
  int counter = 0;  // guarded by the lock
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int cycle = 0; cycle < 50; ++cycle) {
          const auto held = stock.acquire({.wait = patience});
          ASSERT_TRUE(held);
          EXPECT_TRUE(held->degraded());
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 200);
}

}  // namespace
}  // namespace holdfast::test
