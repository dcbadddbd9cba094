// The store among processes while the server is restarted and its connections are ended: exact counts,
// growing fences, nobody stuck.
#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_world.hpp"
#include "support/fenced_counter.hpp"
#include "support/forked_process.hpp"
#include "support/rounds.hpp"
#include "support/shared_page.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class sql_processes : public testing::TestWithParam<sql_setup> {};

INSTANTIATE_TEST_SUITE_P(on, sql_processes, testing::ValuesIn(sql_setups({"lease"})), name_of_sql);

constexpr int process_count = 16;
// The first contact creates the tables, which takes seconds beside many other servers.
const std::string slow_machine = "&connect_timeout=60s";

struct sql_race {
  fenced_counter counter;
  std::atomic<int> overlaps{0};
  std::atomic<int> lost{0};
};

void count(const std::string& url, sql_race& shared, int rounds, bool fair) {
  const client own = open_client(url);
  mutex stock(own, "stock", {.ttl = 20s, .fair = fair});
  for (int done = 0; done < rounds;) {
    auto held = stock.acquire({.wait = 120s});
    if (!held) throw lock_error(held.error());
    if (shared.counter.add_one(held->fence().value())) {
      ++done;
    } else {
      // A newer holder is in: only a holder whose lease has ended, and which knows it, may see
      // that.
      ++(held->valid() ? shared.overlaps : shared.lost);
    }
    // If the server is down, the release continues in the background.
    static_cast<void>(held->release());
  }
}

TEST_P(sql_processes, increments_of_sixteen_are_exact_over_five_restarts) {
  // Broken: exclusion, the order of fences, or the way back after a restart.
  const int turns = rounds(60, 300);
  const auto world = GetParam().make(false);
  const std::string url = world->url(slow_machine + "&connections=1");
  const shared_page<sql_race> shared;
  std::vector<forked_process> children;
  for (int i = 0; i < process_count; ++i) {
    children.emplace_back([&, fair = i % 2 == 0] { count(url, *shared, turns, fair); });
  }
  const int step = process_count * turns / 6;
  for (int restart = 1; restart <= 5; ++restart) {
    ASSERT_TRUE(eventually([&] { return shared->counter.count() >= restart * step; }, 120s));
    world->end_some();
    world->restart(restart % 2 == 0 ? sql_world::shutdown::orderly : sql_world::shutdown::killed);
  }
  for (auto& each : children) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared->counter.count(), process_count * turns);
  EXPECT_EQ(shared->overlaps, 0);
  // A machine that is paused for longer than an offer ends the one lease there is.
  constexpr int standstills = 5;
  EXPECT_LE(shared->lost, standstills);
}

// A holder, a queue of processes that are all killed or frozen, and a live one behind them.
class silent_line {
 public:
  explicit silent_line(const sql_world& world) : world_(world) {
    // Forked first: a fork during another thread's connect may copy a library's lock in the held
    // state.
    for (int i = 0; i < process_count; ++i) {
      line_.emplace_back([&] {
        if (!eventually([&] { return is_held_->load(); })) return;
        const client own = open_client(world_.url(slow_machine + "&connections=1"));
        static_cast<void>(mutex(own, "stock", {.fair = true}).acquire());
      });
    }
  }

  // How long the live one waits after the holder has released the lock. `strike`: what happens to
  // the others.
  result<duration> live_one_waits(const std::function<void(forked_process&)>& strike) {
    const client a = open_client(world_.url(slow_machine));
    auto held = mutex(a, "stock").acquire({.wait = patience});
    if (!held) return tl::unexpected(held.error());
    *is_held_ = true;
    EXPECT_TRUE(has_waiters(a, "stock", process_count));
    const client b = open_client(world_.url(slow_machine));
    reply<lease> waits;
    mutex(b, "stock", {.fair = true}).async_acquire({.wait = 2min}, {}, waits.callback());
    EXPECT_TRUE(has_waiters(a, "stock", process_count + 1));
    for (auto& each : line_) strike(each);
    const auto before = std::chrono::steady_clock::now();
    EXPECT_THAT(held->release(), succeeds());
    const auto granted = waits.future.get();
    if (!granted) return tl::unexpected(granted.error());
    return std::chrono::steady_clock::now() - before;
  }

 private:
  const sql_world& world_;
  const shared_page<std::atomic<bool>> is_held_;
  std::vector<forked_process> line_;
};

// One offer of 2 s and a re-check of 1 s, on a machine under load; an offer each would be 32 s.
constexpr duration one_offer = 15s;

TEST_P(sql_processes, however_many_were_killed_in_line_they_cost_at_most_one_offer) {
  // Broken: dead waiters are offered the lock one after another (H76, H82).
  const auto world = GetParam().make(true);
  const auto waited = silent_line(*world).live_one_waits([](forked_process& each) { each.kill(); });
  ASSERT_THAT(waited, succeeds());
  EXPECT_LT(*waited, one_offer);
  RecordProperty("waited_ms", std::to_string(*waited / 1ms));
}

TEST_P(sql_processes, however_many_are_frozen_in_line_they_cost_at_most_one_offer) {
  // Broken: frozen waiters are offered the lock one after another (G6.3).
  const auto world = GetParam().make(true);
  const auto waited = silent_line(*world).live_one_waits([](forked_process& each) { each.stop(); });
  ASSERT_THAT(waited, succeeds());
  EXPECT_LT(*waited, one_offer);
  RecordProperty("waited_ms", std::to_string(*waited / 1ms));
}

}  // namespace
}  // namespace holdfast::test

#endif
