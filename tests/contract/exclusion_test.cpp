// One holder at a time, no matter who asks, and every grant with a greater fence.
#include "contract/flavours.hpp"
#include "support/rounds.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(exclusion);

TEST_P(exclusion, what_one_client_holds_is_busy_for_another) {
  // Broken: two processes hold one lock.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(make(a)->acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(exclusion, what_was_released_is_free_at_once) {
  // Broken: a release answers before it has happened.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_FALSE(held->valid());
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), succeeds());
}

TEST_P(exclusion, a_dropped_lease_gives_the_lock_back) {
  // Broken: an early return or an exception leaves the lock to its ttl.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  { ASSERT_THAT(make(a)->acquire(), succeeds()); }
  EXPECT_THAT(make(b)->acquire({.wait = patience}), succeeds());
}

TEST_P(exclusion, a_lease_that_is_assigned_over_gives_back_what_it_held) {
  // Broken: a loop that reuses one variable leaks a lock each time.
  if (!supported()) return;
  const client a = open();
  auto first = make(a, "first")->acquire();
  auto second = make(a, "second")->acquire();
  ASSERT_THAT(first, succeeds());
  ASSERT_THAT(second, succeeds());
  *first = std::move(*second);
  EXPECT_EQ(first->name(), "second");
  EXPECT_THAT(make(a, "first")->acquire({.wait = patience}), succeeds());
  EXPECT_THAT(make(a, "second")->acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(exclusion, an_empty_lease_holds_nothing) {
  // Broken: a moved-from lease is taken for a held lock.
  if (!supported()) return;
  const client a = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  lease moved = std::move(*held);
  EXPECT_TRUE(moved.valid());
  EXPECT_FALSE(held->valid());
  EXPECT_FALSE(static_cast<bool>(*held));
  EXPECT_TRUE(held->lost().stop_requested());
  EXPECT_THAT(held->release(), fails_with(errc::not_held));
  EXPECT_THAT(moved.release(), succeeds());
  EXPECT_THAT(moved.release(), fails_with(errc::not_held));
}

TEST_P(exclusion, a_lease_may_be_released_on_another_thread) {
  // Broken: the value interface is bound to a thread, and tasks cannot pass a lease on.
  if (!supported()) return;
  const client a = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  std::thread([moved = std::move(*held)]() mutable {
    EXPECT_THAT(moved.release(), succeeds());
  }).join();
  EXPECT_THAT(make(a)->acquire({.wait = 0s}), succeeds());
}

TEST_P(exclusion, different_names_do_not_conflict) {
  // Broken: one lock for everything.
  if (!supported()) return;
  const client a = open();
  const auto p = make(a, "p")->acquire({.wait = 0s});
  EXPECT_THAT(p, succeeds());
  EXPECT_THAT(make(a, "p/q")->acquire({.wait = 0s}), succeeds());
  EXPECT_THAT(make(a, "P")->acquire({.wait = 0s}), succeeds());
  EXPECT_THAT(make(a, "p ")->acquire({.wait = 0s}), succeeds());
}

TEST_P(exclusion, a_lease_says_what_it_is) {
  // Broken: logs and fenced writes name the wrong lock.
  if (!supported()) return;
  const client a = open();
  const auto held = make(a, "stock/7", {.ttl = 20s})->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_EQ(held->name(), "stock/7");
  EXPECT_GT(held->fence().value(), 0U);
  EXPECT_FALSE(held->degraded());
  EXPECT_GT(held->valid_for(), 10s);
  if (a.caps().expires) {
    EXPECT_LE(held->valid_for(), 20s);
    EXPECT_LE(held->ttl(), 20s);
    EXPECT_LT(held->valid_until(), clock::now() + 20s);
  }
  const auto state = a.inspect("stock/7");
  ASSERT_THAT(state, succeeds());
  ASSERT_EQ(state->holders.size(), 1U);
  if (!a.caps().reports_holders) {
    EXPECT_EQ(state->holders[0].fence, std::nullopt);
    EXPECT_EQ(state->holders[0].payload, "");
    return;
  }
  EXPECT_EQ(state->holders[0].claim, held->claim());
  EXPECT_EQ(state->holders[0].fence, held->fence());
}

TEST_P(exclusion, every_grant_has_a_greater_fence_than_those_that_ended_before) {
  // Broken: a paused holder's late write is taken for the newer one.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto from_a = make(a);
  const auto from_b = make(b);
  fence_token last;
  for (int i = 0; i < 50; ++i) {
    auto held = (i % 2 == 0 ? from_a : from_b)->acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    EXPECT_GT(held->fence(), last);
    last = held->fence();
    ASSERT_THAT(held->release(), succeeds());
  }
}

TEST_P(exclusion, threads_of_many_clients_never_hold_together) {
  // Broken: exclusion itself, or a lock that is never passed on.
  if (!supported()) return;
  constexpr int clients = 3;
  constexpr int threads_each = 4;
  const int turns = rounds(8, 25);
  std::atomic<int> inside{0};
  std::atomic<int> meetings{0};
  int counter = 0;         // guarded by the lock under test
  fence_token last_fence;  // guarded by the lock under test
  std::vector<client> all;
  for (int i = 0; i < clients; ++i) all.push_back(open());
  {
    std::vector<std::jthread> threads;
    for (const client& each : all) {
      for (int i = 0; i < threads_each; ++i) {
        threads.emplace_back([&] {
          const auto lock = make(each);
          for (int round = 0; round < turns; ++round) {
            const auto held = lock->acquire({.wait = 4 * patience});
            ASSERT_THAT(held, succeeds());
            if (inside.fetch_add(1) != 0) meetings.fetch_add(1);
            EXPECT_GT(held->fence(), last_fence);
            last_fence = held->fence();
            ++counter;
            inside.fetch_sub(1);
          }
        });
      }
    }
  }
  EXPECT_EQ(meetings.load(), 0);
  EXPECT_EQ(counter, clients * threads_each * turns);
  EXPECT_TRUE(becomes_free(all[0], "stock/42"));
}

}  // namespace
}  // namespace holdfast::test
