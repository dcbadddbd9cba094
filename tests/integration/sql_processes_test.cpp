// The store among processes while the server is restarted and its connections are ended: exact counts,
// growing fences, nobody stuck.
#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_world.hpp"
#include "support/fenced_counter.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace holdfast::test {
namespace {

class sql_processes : public testing::TestWithParam<sql_setup> {};

INSTANTIATE_TEST_SUITE_P(on, sql_processes, testing::ValuesIn(sql_setups({"lease"})), name_of_sql);

constexpr int processes = 16;

struct race {
  fenced_counter counter;
  std::atomic<int> overlaps{0};
  std::atomic<int> lost{0};
};

void count(const std::string& url, race& shared, int rounds, bool fair) {
  const client own = open_client(url);
  mutex stock(own, "stock", {.ttl = 20s, .fair = fair});
  for (int done = 0; done < rounds;) {
    auto held = stock.acquire({.wait = 120s});
    if (!held) throw lock_error(held.error());
    if (shared.counter.add_one(held->fence().value())) {
      ++done;
    } else {
      // Somebody newer is in: that is for those alone whose lease has ended, and who know it.
      ++(held->valid() ? shared.overlaps : shared.lost);
    }
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
    ASSERT_TRUE(eventually([&] { return shared->counter.count() >= restart * step; }, 120s));
    world->end_some();
    world->restart(restart % 2 == 0 ? sql_world::shutdown::orderly : sql_world::shutdown::killed);
  }
  for (auto& each : children) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared->counter.count(), processes * rounds);
  EXPECT_EQ(shared->overlaps, 0);
  // A machine that stands still for longer than an offer ends the one lease there is.
  constexpr int standstills = 5;
  EXPECT_LE(shared->lost, standstills);
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
