// The Redis store among processes: exclusion while the server is killed, killed and paused waiters,
// holders that are paused past their lease.
#include "integration/redis_store_harness.hpp"
#include "support/eventually.hpp"
#include "support/fenced_counter.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"
#include "support/temporary_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

const redis_options durable{false, {"--appendonly", "yes", "--appendfsync", "always"}, {}};

struct counting_processes {
  static constexpr int processes = 16;
  static constexpr int kills = 10;

  std::atomic<bool> enough{false};
  fenced_counter counter;
  std::atomic<int> overlaps{0};
};

void count_under_the_lock(const std::string& url, counting_processes& shared) {
  const client mine = open_client(url);
  mutex lock(mine, "counter", {.ttl = 20s});
  while (!shared.enough.load()) {
    const auto lease = lock.acquire({.wait = 60s});
    if (!lease) throw lock_error(lease.error());
    // Only holders whose lease has ended meet a newer one: the machine was paused for an offer.
    if (!shared.counter.add_one(lease->fence().value()) && lease->valid()) ++shared.overlaps;
  }
}

TEST(redis_store_processes, sixteen_processes_count_exactly_while_the_server_is_killed_ten_times) {
  // Broken: exclusion, the order of fences, or somebody stuck, when a durable server crashes.
  redis_server server(durable);
  const shared_page<counting_processes> shared;
  std::vector<forked_process> processes;
  for (int i = 0; i < counting_processes::processes; ++i) {
    processes.emplace_back([&] { count_under_the_lock(redis_url(server.port()), *shared); });
  }
  const auto goes_on = [&] {
    const int before = shared->counter.count();
    return eventually([&] { return shared->counter.count() >= before + 50; }, 2 * patience);
  };
  for (int kill = 0; kill < counting_processes::kills; ++kill) {
    ASSERT_TRUE(goes_on()) << "stuck";
    server.kill();
    server.start();
  }
  EXPECT_TRUE(goes_on()) << "stuck";
  shared->enough = true;
  for (auto& each : processes) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared->overlaps, 0);
}

struct talk {
  std::atomic<int> in_line{0};
  std::atomic<int> holding{0};
  std::atomic<std::uint64_t> fence{0};
  std::atomic<bool> lost{false};
  std::atomic<bool> valid{true};
  std::atomic<bool> go_on{false};
};

// Acquires, reports it, and stays.
forked_process waiter(const std::string& url, talk& shared) {
  return forked_process([&shared, url] {
    if (!eventually([&] { return shared.go_on.load(); }, 8 * patience)) std::abort();
    const client mine = open_client(url);
    mutex lock(mine, "stock", {.ttl = 60s, .fair = true});
    const auto lease = lock.acquire({.wait = 60s});
    if (lease) ++shared.holding;
    while (true) ::pause();
  });
}

TEST(redis_store_processes, a_killed_waiter_is_skipped_at_once_and_a_paused_one_costs_one_offer) {
  // Broken (G6.3, G7.4): the lock would be given to dead waiters, and stay with each for its whole
  // ttl.
  const redis_server server;
  const shared_page<talk> shared;
  const std::string url = redis_url(server.port());
  std::vector<forked_process> children;
  for (int i = 0; i < 4; ++i) children.push_back(waiter(url, *shared));
  const client own = open_client(url);
  mutex lock(own, "stock", {.ttl = 30s, .fair = true});
  auto first = lock.acquire({.wait = patience});
  ASSERT_TRUE(first);
  shared->go_on = true;
  ASSERT_TRUE(eventually([&] { return line_length(own, "stock") == 4; }));
  children[0].kill();
  children[1].kill();
  children[2].kill();
  children[3].stop();
  auto next = in_thread([&] { return lock.acquire({.wait = patience}); });
  ASSERT_TRUE(eventually([&] { return line_length(own, "stock") == 5; }));
  const time_point freed = clock::now();
  EXPECT_EQ(told(first->release()), "ok");
  ASSERT_TRUE(arrives(next));
  const auto lease = next.get();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_LT(clock::now() - freed, 20s);  // one offer of 2 s, a re-check of 1 s, and a slow machine
}

TEST(redis_store_processes, ten_thousand_dead_waiters_do_not_keep_a_live_one_from_a_free_lock) {
  // Broken (G6.1, G8.2): the lock would be free, and everybody would wait for minutes.
  constexpr std::size_t dead = 10'000;
  const redis_server server;
  const std::string url = redis_url(server.port());
  const shared_page<talk> shared;
  forked_process others([&] {
    if (!eventually([&] { return shared->go_on.load(); }, 8 * patience)) std::abort();
    const client mine = open_client(url);
    std::vector<std::unique_ptr<mutex>> locks;
    for (std::size_t i = 0; i < dead; ++i) {
      locks.push_back(
          std::make_unique<mutex>(mine, "stock", lock_options{.ttl = 60s, .fair = true}));
      locks.back()->async_acquire({.wait = 600s}, {}, [](const result<lease>&) {});
    }
    while (true) ::pause();
  });
  const client own = open_client(url);
  mutex lock(own, "stock", {.ttl = 60s, .fair = true});
  auto first = lock.acquire({.wait = patience});
  ASSERT_TRUE(first);
  shared->go_on = true;
  ASSERT_TRUE(eventually([&] { return line_length(own, "stock") == dead; }, 4 * patience));
  others.kill();
  const client other = open_client(url);
  auto next = in_thread([&] {
    mutex same(other, "stock", {.ttl = 60s, .fair = true});
    return same.acquire({.wait = 4 * patience});
  });
  // inspect() shows 10,000 at most.
  ASSERT_TRUE(eventually([&] {
    const auto all = own.list("stock");
    return all && all->size() == 1 && all->front().waiters == dead + 1;
  }));
  const time_point freed = clock::now();
  EXPECT_EQ(told(first->release()), "ok");
  ASSERT_TRUE(arrives(next));
  const duration took = clock::now() - freed;
  const auto lease = next.get();
  ASSERT_TRUE(lease) << lease.error().message();
  RecordProperty("milliseconds", std::to_string(took / 1ms));
  EXPECT_LT(took, 15s);  // 3 s on a calm machine
}

TEST(redis_store_processes, a_holder_paused_past_its_lease_has_lost_it_when_it_goes_on) {
  // Broken (H01): it would write beside the next holder, unnoticed.
  const redis_server server;
  const shared_page<talk> shared;
  const std::string url = redis_url(server.port());
  forked_process holder([&] {
    const client mine = open_client(url);
    mutex lock(mine, "stock", {.ttl = 1s});
    const auto lease = lock.acquire();
    shared->fence = lease->fence().value();
    shared->holding = 1;
    if (!eventually([&] { return shared->go_on.load(); }, 8 * patience)) std::abort();
    shared->valid = lease->valid();
    shared->lost = eventually([&] { return lease->lost().stop_requested(); });
  });
  ASSERT_TRUE(eventually([&] { return shared->holding.load() == 1; }));
  holder.stop();
  const client own = open_client(url);
  mutex lock(own, "stock", {.ttl = 10s});
  const auto lease = lock.acquire({.wait = patience});
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_GT(lease->fence().value(), shared->fence.load());
  shared->go_on = true;
  holder.signal(SIGCONT);
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_FALSE(shared->valid.load());
  EXPECT_TRUE(shared->lost.load());
}

TEST(redis_store_processes, nothing_is_left_of_processes_that_died_but_states_that_end) {
  // Broken (G8): keys of dead clients would accumulate forever.
  redis_server server;
  const std::string url = redis_url(server.port(), "?offer=200ms");
  {
    const shared_page<talk> shared;
    std::vector<forked_process> children;
    for (int i = 0; i < 6; ++i) {
      children.emplace_back([&] {
        const client mine = open_client(url);
        mutex plain(mine, "plain", {.ttl = 1s});
        shared_mutex both(mine, "both", {.ttl = 1s});
        semaphore some(mine, "some", {.max = 2, .lock = {.ttl = 1s}});
        const auto one = plain.acquire({.wait = 0s});
        const auto two = both.acquire_shared({.wait = 0s});
        const auto three = some.acquire({.wait = 0s});
        ++shared->in_line;
        const auto four = both.acquire({.wait = 60s});
      });
    }
    ASSERT_TRUE(eventually([&] { return shared->in_line.load() == 6; }));
    for (auto& each : children) each.kill();
  }
  const client own = open_client(url);
  EXPECT_TRUE(eventually([&] {
    const auto list = own.list("");
    return list && std::ranges::none_of(*list, [](const auto& one) { return one.holders > 0; });
  }));
  const std::string keys = server.cli({"KEYS", "*"});
  std::istringstream lines(keys);
  for (std::string key; std::getline(lines, key);) {
    constexpr long never = -1;  // and -2: it has ended meanwhile
    EXPECT_NE(std::stol(server.cli({"PTTL", key})), never) << key << " never ends";
  }
}

}  // namespace
}  // namespace holdfast::test
