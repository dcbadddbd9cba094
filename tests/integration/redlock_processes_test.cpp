// Sixteen processes on a quorum of five, while any two of its servers at a time are killed, stopped or
// cut off, at random. HOLDFAST_QUORUM_SECONDS makes it longer than it is in `make test`.
#ifdef HOLDFAST_WITH_REDIS

#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/fenced_counter.hpp"
#include "support/forked_process.hpp"
#include "support/redlock_servers.hpp"
#include "support/rounds.hpp"
#include "support/shared_page.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t members = 5;
constexpr int processes = 16;

struct race {
  // Where the processes find the members: they are forked before there is any thread.
  std::array<std::atomic<std::uint16_t>, members> ports{};
  std::atomic<bool> begin{false};
  std::atomic<bool> enough{false};
  std::atomic<int> refused{0};
  std::atomic<std::int64_t> longest_wait{0};  // milliseconds
  fenced_counter counter;
  std::atomic<int> overlaps{0};
};

void raise_to(std::atomic<std::int64_t>& most, std::int64_t value) {
  std::int64_t seen = most.load();
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

void take_turns(race& shared) {
  if (!eventually([&] { return shared.begin.load(); }, 4 * patience))
    throw std::runtime_error("no begin");
  std::string url = "redlock://";
  for (const auto& port : shared.ports) {
    url += (url.back() == '/' ? "" : ",") + ("127.0.0.1:" + std::to_string(port.load()));
  }
  auto opened = client::open(url + "?longest_ttl=5s&durable=yes");
  if (!opened) throw lock_error(opened.error());
  mutex stock(*opened, "stock", {.ttl = 5s});
  while (!shared.enough) {
    const time_point before = clock::now();
    auto lease = stock.acquire({.wait = 60s});
    raise_to(shared.longest_wait, (clock::now() - before) / 1ms);
    if (!lease) {
      ++shared.refused;
      continue;
    }
    // Only holders whose lease has ended meet a newer one.
    if (!shared.counter.add_one(lease->fence().value()) && lease->valid()) ++shared.overlaps;
    static_cast<void>(lease->release());
  }
}

// One member and what happens to it.
class victim {
 public:
  victim(redis_server& server, fault_proxy& proxy) : server_(&server), proxy_(&proxy) {}

  void harm(std::uint64_t draw) {
    what_ = static_cast<kind>(draw % 3);
    if (what_ == kind::killed) server_->kill();
    if (what_ == kind::stopped) server_->pause();
    if (what_ == kind::cut_off) {
      proxy_->lose(fault_proxy::way::to_server);
      proxy_->lose(fault_proxy::way::to_client);
    }
  }
  void heal() {
    if (what_ == kind::killed) server_->start();
    if (what_ == kind::stopped) server_->resume();
    if (what_ == kind::cut_off) {
      proxy_->pass();
      proxy_->reset();
    }
  }

 private:
  enum class kind : std::uint8_t { killed, stopped, cut_off };

  redis_server* server_;
  fault_proxy* proxy_;
  kind what_ = kind::killed;
};

TEST(redlock_processes, sixteen_count_exactly_while_any_two_of_five_are_killed_stopped_or_cut_off) {
  // Broken: exclusion, the order of fences, or a client that is stuck, when a minority fails.
  const shared_page<race> shared;
  std::vector<forked_process> others;
  for (int i = 0; i < processes; ++i) others.emplace_back([&] { take_turns(*shared); });
  // Every write is on disk before it is answered: a killed server comes back with what it knew.
  redlock_servers servers(
      members,
      {.tls = false, .arguments = {"--appendonly", "yes", "--appendfsync", "always"}, .admin = {}});
  std::vector<std::unique_ptr<fault_proxy>> proxies;
  for (std::size_t i = 0; i < members; ++i) {
    proxies.push_back(std::make_unique<fault_proxy>(servers[i].port()));
    shared->ports[i] = proxies[i]->port();
  }
  shared->begin = true;
  ASSERT_TRUE(eventually([&] { return shared->counter.count() > 0; }, 4 * patience));

  std::mt19937_64 random(std::random_device{}());
  const std::chrono::seconds length(rounds(15, 180));
  const time_point end = clock::now() + length;
  int troubles = 0;
  while (clock::now() < end) {
    const std::size_t one = random() % members;
    const std::size_t other = (one + 1 + random() % (members - 1)) % members;
    victim first(servers[one], *proxies[one]);
    victim second(servers[other], *proxies[other]);
    first.harm(random());
    second.harm(random());
    ++troubles;
    const int before = shared->counter.count();
    // Work continues beside them; they still stay down for a while.
    ASSERT_TRUE(eventually([&] { return shared->counter.count() > before + 20; }, 2 * patience))
        << "nobody gets in though three of five are up";
    const auto pause = std::chrono::milliseconds(random() % 700);
    static_cast<void>(eventually([] { return false; }, pause));
    first.heal();
    second.heal();
  }
  shared->enough = true;
  for (forked_process& each : others) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared->refused.load(), 0);
  EXPECT_EQ(shared->overlaps.load(), 0);
  std::cout << shared->counter.count() << " grants, " << troubles << " times two of five down in "
            << length.count() << " s, longest wait " << shared->longest_wait.load() << " ms\n";
}

}  // namespace
}  // namespace holdfast::test

#endif
