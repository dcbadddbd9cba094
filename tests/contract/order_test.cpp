// Fair and unfair: who is next.
#include "contract/contract.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(order);

// Redisson's fair lock shows who waits in its queue, but its other locks keep none.
[[nodiscard]] bool stands_in_line(const client& from, std::size_t count, bool fair) {
  if (!keeps_line(from) && !fair) return true;
  return eventually([&] { return waiters(from, "line") == count; });
}

// Lets `count` clients wait one after another, releases, and returns the order in which they were
// granted.
template <class Fixture>
std::vector<int> order_of_grants(const Fixture& fixture, int count, const lock_options& options) {
  const client first = fixture.open();
  auto held = mutex(first, "line", options).acquire();
  EXPECT_THAT(held, succeeds());
  std::vector<client> clients;
  for (int i = 0; i < count; ++i) clients.push_back(fixture.open());
  std::mutex guard;
  std::vector<int> came;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        mutex lock(clients[static_cast<std::size_t>(i)], "line", options);
        const auto mine = lock.acquire({.wait = patience});
        EXPECT_THAT(mine, succeeds());
        const std::lock_guard inside(guard);
        came.push_back(i);
      });
      EXPECT_TRUE(stands_in_line(first, static_cast<std::size_t>(i) + 1, options.fair));
    }
    EXPECT_THAT(held->release(), succeeds());
  }
  return came;
}

TEST_P(order, fair_means_first_come_first_served) {
  // Broken: a waiter is overtaken although fairness was requested.
  const client a = open();
  if (!a.caps().fair) {
    EXPECT_THAT(mutex(a, "line", {.fair = true}).acquire(), fails_with(errc::unsupported));
    return;
  }
  EXPECT_THAT(order_of_grants(*this, 6, {.fair = true}), testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_P(order, unfair_waiters_keep_their_order_too) {
  // Broken: the first to wait is the last to be served, forever.
  const auto came = order_of_grants(*this, 5, {});
  if (open().caps().fair && keeps_line(open())) {
    EXPECT_THAT(came, testing::ElementsAre(0, 1, 2, 3, 4));
  } else {
    EXPECT_THAT(came, testing::UnorderedElementsAre(0, 1, 2, 3, 4));
  }
}

TEST_P(order, threads_of_one_client_are_served_in_order_when_fair) {
  // Broken: the local queue lets a client's threads overtake others, or one another.
  const client a = open();
  if (!a.caps().fair) {
    EXPECT_THAT(mutex(a, "line", {.fair = true}).acquire(), fails_with(errc::unsupported));
    return;
  }
  const client b = open();
  mutex from_a(a, "line", {.fair = true});
  mutex from_b(b, "line", {.fair = true});
  auto held = from_a.acquire();
  ASSERT_THAT(held, succeeds());
  std::mutex guard;
  std::vector<int> came;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        const auto mine = (i % 2 == 0 ? from_a : from_b).acquire({.wait = patience});
        EXPECT_THAT(mine, succeeds());
        const std::lock_guard inside(guard);
        came.push_back(i);
      });
      ASSERT_TRUE(stands_in_line(a, static_cast<std::size_t>(i) + 1, true));
    }
    ASSERT_THAT(held->release(), succeeds());
  }
  EXPECT_TRUE(std::is_sorted(came.begin(), came.end()));
}

TEST_P(order, once_a_fair_claim_waits_everybody_queues_behind_it) {
  // Broken: unfair newcomers keep a fair waiter out.
  const client a = open();
  if (!a.caps().fair) {
    EXPECT_THAT(mutex(a, "line", {.fair = true}).acquire(), fails_with(errc::unsupported));
    return;
  }
  if (!keeps_line(a)) return;  // Redisson's plain lock bypasses the queue of its fair one
  const client b = open();
  const client c = open();
  auto held = mutex(a, "line").acquire();
  ASSERT_THAT(held, succeeds());
  mutex fair(b, "line", {.fair = true});
  mutex unfair(c, "line");
  std::atomic<bool> fair_was_in{false};
  auto first = in_thread([&] {
    auto mine = fair.acquire({.wait = patience});
    fair_was_in = true;
    return mine;
  });
  ASSERT_TRUE(has_waiters(a, "line", 1));
  auto second = in_thread([&] {
    auto mine = unfair.acquire({.wait = patience});
    EXPECT_TRUE(fair_was_in.load());
    return mine;
  });
  ASSERT_TRUE(has_waiters(a, "line", 2));
  EXPECT_THAT(unfair.acquire({.wait = 0s}), fails_with(errc::busy));
  ASSERT_THAT(held->release(), succeeds());
  {
    auto mine = first.get();
    ASSERT_THAT(mine, succeeds());
    EXPECT_FALSE(arrives(second, 20ms));
  }
  EXPECT_THAT(second.get(), succeeds());
}

TEST_P(order, a_waiter_that_gave_up_is_skipped) {
  // Broken: a waiter that left its place still holds up those behind it.
  const client a = open();
  const client b = open();
  const client c = open();
  auto held = mutex(a, "line").acquire();
  ASSERT_THAT(held, succeeds());
  std::stop_source stop;
  mutex from_b(b, "line");
  mutex from_c(c, "line");
  auto gives_up = in_thread([&] { return from_b.acquire({}, stop.get_token()); });
  ASSERT_TRUE(has_waiters(a, "line", 1));
  auto stays = in_thread([&] { return from_c.acquire({.wait = patience}); });
  ASSERT_TRUE(has_waiters(a, "line", 2));
  stop.request_stop();
  EXPECT_THAT(gives_up.get(), fails_with(errc::cancelled));
  EXPECT_TRUE(has_waiters(a, "line", 1));
  ASSERT_THAT(held->release(), succeeds());
  EXPECT_THAT(stays.get(), succeeds());
}

}  // namespace
}  // namespace holdfast::test
