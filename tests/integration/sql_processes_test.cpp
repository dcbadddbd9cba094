// The store among processes while the server is restarted and its connections are ended: exact counts,
// growing fences, nobody stuck.
#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_world.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

class sql_processes : public testing::TestWithParam<sql_setup> {};

INSTANTIATE_TEST_SUITE_P(on, sql_processes, testing::ValuesIn(sql_setups({"lease"})), name_of_sql);

constexpr int processes = 16;

struct race {
  // Read, then written: wrong as soon as two do it at once.
  std::atomic<int> counter{0};
  std::atomic<int> rounds_done{0};
  std::atomic<std::uint64_t> last_fence{0};
  std::atomic<int> disorders{0};
  std::atomic<int> lost{0};
};

void count(const std::string& url, race& shared, int rounds, bool fair) {
  const client own = open_client(url);
  mutex stock(own, "stock", {.ttl = 20s, .fair = fair});
  for (int round = 0; round < rounds; ++round) {
    auto held = stock.acquire({.wait = 120s});
    if (!held) throw lock_error(held.error());
    if (held->fence().value() <= shared.last_fence.exchange(held->fence().value())) {
      ++shared.disorders;
    }
    const int before = shared.counter.load();
    std::this_thread::yield();
    shared.counter.store(before + 1);
    if (!held->valid()) ++shared.lost;
    ++shared.rounds_done;
    // Where the server is down, the release goes on in the background.
    static_cast<void>(held->release());
  }
}

TEST_P(sql_processes, increments_of_sixteen_are_exact_over_five_restarts) {
  // Broken: exclusion, the order of fences, or the way back after a restart.
  const int rounds = GetParam().name == "mariadb" ? 60 : 300;  // a commit there takes longer
  const auto world = GetParam().make(false);
  const std::string url = world->url("&connections=1");
  const shared_page<race> shared;
  std::vector<forked_process> children;
  for (int i = 0; i < processes; ++i) {
    children.emplace_back([&, fair = i % 2 == 0] { count(url, *shared, rounds, fair); });
  }
  const int step = processes * rounds / 6;
  for (int restart = 1; restart <= 5; ++restart) {
    ASSERT_TRUE(eventually([&] { return shared->rounds_done >= restart * step; }, 120s));
    world->end_some();
    world->restart(restart % 2 == 0 ? sql_world::shutdown::orderly : sql_world::shutdown::killed);
  }
  for (auto& each : children) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared->counter, processes * rounds);
  EXPECT_EQ(shared->disorders, 0);
  EXPECT_EQ(shared->lost, 0);
}

TEST_P(sql_processes, those_who_were_killed_in_line_hold_up_nobody) {
  // Broken: ghost waiters that are granted the lock one after the other (H76, H82).
  const auto world = GetParam().make(true);
  // Forked first: a fork beside a thread that is connecting may copy a lock of a library as held.
  const shared_page<std::atomic<bool>> is_held;
  std::vector<forked_process> ghosts;
  for (int i = 0; i < 2; ++i) {
    // Each with a client of its own, made in the child.
    ghosts.emplace_back([&] {
      if (!eventually([&] { return is_held->load(); })) return;
      const client own = open_client(world->url("&connections=1"));
      static_cast<void>(mutex(own, "stock", {.fair = true}).acquire());
    });
  }
  const client a = open_client(world->url());
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  *is_held = true;
  ASSERT_TRUE(has_waiters(a, "stock", 2));
  for (auto& each : ghosts) each.kill();
  reply<lease> waits;
  const client b = open_client(world->url());
  mutex(b, "stock", {.fair = true}).async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 3));
  EXPECT_THAT(held->release(), succeeds());
  // Two offers of two seconds at most, on a machine under load.
  ASSERT_TRUE(arrives(waits.future, 25s));
  EXPECT_THAT(waits.future.get(), succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
