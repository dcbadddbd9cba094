// Many at once.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"
#include "support/memory_in_use.hpp"
#include "support/rounds.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(many_clients);

TEST_P(many_clients, ten_thousand_waiting_acquisitions_need_no_ten_thousand_threads) {
  // Broken: a waiting acquisition costs a thread, or more memory than a coroutine may.
  constexpr std::size_t many = 10'000;
  // They outlive the client that counts in them.
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> refused{0};
  std::stop_source stop;
  const client a = open();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  const std::size_t threads_before = threads_in_use();
  const std::size_t memory_before = memory_in_use();
  mutex stock(a, "stock");
  const auto count = [&](const result<lease>& answer) {
    (answer ? granted : refused).fetch_add(1);
  };
  for (std::size_t i = 0; i < many; ++i) stock.async_acquire({}, stop.get_token(), count);
  EXPECT_LE(threads_in_use(), threads_before + 8);
  EXPECT_LT(memory_in_use() - std::min(memory_before, memory_in_use()), 64U << 20U);
  EXPECT_EQ(granted.load(), 0U);
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_TRUE(eventually([&] { return granted.load() == many; }, 6 * patience)) << granted.load();
  EXPECT_EQ(refused.load(), 0U);
  EXPECT_TRUE(becomes_free(a, "stock"));
}

TEST_P(many_clients, a_long_line_at_the_engine_is_served_and_can_be_stopped) {
  // Broken: the queue works for ten waiters and not for hundreds.
  const std::size_t many = rounds<std::size_t>(300, 1'000);
  // They outlive the clients that count in them.
  std::atomic<std::size_t> granted{0};
  std::atomic<std::size_t> refused{0};
  std::stop_source stop;
  const client a = open();
  const client b = open();
  const lock_options options{.fair = a.caps().fair};
  auto held = mutex(a, "stock", options).acquire();
  ASSERT_THAT(held, succeeds());
  mutex from_b(b, "stock", options);
  for (std::size_t i = 0; i < many; ++i) {
    from_b.async_acquire({}, stop.get_token(), [&](const result<lease>& answer) {
      (answer ? granted : refused).fetch_add(1);
      if (granted.load() == many / 2) stop.request_stop();
    });
  }
  EXPECT_THAT(held->release(), succeeds());
  const auto over = [&] { return granted.load() + refused.load() == many; };
  EXPECT_TRUE(eventually(over, patience * 6));  // MariaDB takes 10 s, with nothing beside it
  EXPECT_GE(granted.load(), many / 2);
  EXPECT_TRUE(becomes_free(a, "stock"));
}

TEST_P(many_clients, sixty_four_threads_count_exactly) {
  // Broken: exclusion under load, or somebody who waits forever.
  constexpr int threads = 64;
  const int cycles = rounds(20'000, 1'000'000) / threads;
  const client a = open();
  mutex stock(a, "stock");
  int counter = 0;  // guarded by the lock
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (int cycle = 0; cycle < cycles; ++cycle) {
          const auto held = stock.acquire();
          ASSERT_TRUE(held);
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, threads * cycles);
  EXPECT_TRUE(becomes_free(a, "stock"));
}

TEST_P(many_clients, many_locks_at_once_are_all_kept) {
  // Broken: renewal serves one lease and forgets the rest.
  const int most = rounds(200, 1'000);  // several batches of renewals
  constexpr std::size_t least = 32;
  const client a = open();
  const client b = open();
  EXPECT_TRUE(also_longer(4s, [&](duration ttl) {
    std::vector<lease> held;
    for (int i = 0; i < most; ++i) {
      auto got = mutex(a, "stock/" + std::to_string(i), {.ttl = ttl}).acquire();
      // A store may have a limit, which it reports.
      if (!got && got.error() == errc::overloaded && held.size() >= least) break;
      EXPECT_THAT(got, succeeds());
      if (!got) return testing::AssertionFailure() << got.error().message();
      held.push_back(*std::move(got));
    }
    const time_point end = clock::now() + ttl * 9 / 8;
    EXPECT_TRUE(eventually([&] { return clock::now() > end; }, 2 * ttl + patience));
    for (const lease& each : held) {
      if (!each.valid()) return testing::AssertionFailure() << each.name() << " is lost";
    }
    for (std::size_t i = 0; i < held.size(); i += 97) {
      const auto refused = mutex(b, "stock/" + std::to_string(i)).acquire({.wait = 0s});
      EXPECT_TRUE(!refused || !held[i].valid()) << held[i].name();
      EXPECT_TRUE(refused || refused.error() == errc::busy) << refused.error().message();
    }
    return testing::AssertionSuccess();
  }));
}

}  // namespace
}  // namespace holdfast::test
