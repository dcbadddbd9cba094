// The ZooKeeper store against Curator's InterProcessMutex on the same server in the same run, one
// after the other in blocks: a lock of its own per thread, one lock for all; and what a look at a
// queue costs by its length. Starts a server of its own.
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/holdfast.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using holdfast::client;
using holdfast::test::zookeeper_server;
using namespace std::chrono_literals;
using stopwatch = std::chrono::steady_clock;

constexpr int blocks = 3;
constexpr int warm_up_seconds = 4;
constexpr int seconds = 4;

zookeeper_server& server() {
  static const auto one = holdfast::test::start_zookeeper();
  return *one;
}

client open() {
  static const std::string root = holdfast::test::fresh_chroot();
  return client::open("zookeeper://" + server().host() + root).value();
}

// Pairs a second of all threads of one client.
double pairs(int threads, bool same) {
  const client mine = open();
  std::atomic<bool> done{false};
  std::atomic<long> made{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      holdfast::mutex lock(mine, same ? "same" : "own" + std::to_string(i));
      while (!done) {
        auto held = lock.acquire();
        if (!held || !held->release()) throw std::runtime_error("not held");
        made.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  // As long as Curator: this warms up the server, which is Java too.
  std::this_thread::sleep_for(std::chrono::seconds(warm_up_seconds));
  const auto begun = stopwatch::now();
  const long before = made.load();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const double per_second = static_cast<double>(made.load() - before) /
                            std::chrono::duration<double>(stopwatch::now() - begun).count();
  done = true;
  return per_second;
}

double curator_pairs(int threads, bool same) {
  const char* source = std::getenv("HOLDFAST_SOURCE_DIR");
  std::string classes;
  for (const char* each : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                           "guava", "slf4j-nop"}) {
    classes += "/usr/share/java/" + std::string(each) + ".jar:";
  }
  const std::string text = holdfast::test::run_program(
      {"java", "-cp", classes,
       std::string(source == nullptr ? "." : source) + "/bench/peers/CuratorPairs.java",
       server().host(), holdfast::test::fresh_chroot(), std::to_string(threads),
       same ? "same" : "own", std::to_string(warm_up_seconds), std::to_string(seconds)});
  return std::stod(text);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void against_curator(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  const bool same = state.range(1) != 0;
  for (auto each : state) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int i = 0; i < blocks; ++i) {
      ours.push_back(pairs(threads, same));
      theirs.push_back(curator_pairs(threads, same));
    }
    state.counters["holdfast_pairs_per_s"] = median(ours);
    state.counters["curator_pairs_per_s"] = median(theirs);
    state.counters["ratio"] = median(ours) / median(theirs);
  }
}
BENCHMARK(against_curator)
    ->ArgNames({"threads", "one_lock"})
    ->Args({1, 0})
    ->Args({16, 0})
    ->Args({16, 1})
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

// A try at a held lock, with this many waiters in the queue: one list of them all.
void try_by_waiters(benchmark::State& state) {
  const client holder = open();
  const client others = open();
  const client mine = open();
  const std::string name = "line" + std::to_string(state.range(0));
  auto held = holdfast::mutex(holder, name).acquire();
  holdfast::mutex waiter(others, name, {.fair = true});
  std::stop_source stop;
  std::atomic<long> ended{0};
  for (long i = 0; i < state.range(0); ++i) {
    waiter.async_acquire({}, stop.get_token(), [&](auto) { ended.fetch_add(1); });
  }
  const bool there = holdfast::test::eventually(
      [&] { return static_cast<long>(holder.list(name)->front().waiters) == state.range(0); });
  if (!held || !there) throw std::runtime_error("no line");
  holdfast::mutex lock(mine, name);
  for (auto each : state) {
    if (lock.acquire({.wait = 0s})) throw std::runtime_error("two holders");
  }
  stop.request_stop();
  if (!holdfast::test::eventually([&] { return ended.load() == state.range(0); })) {
    throw std::runtime_error("waiters that do not end");
  }
}
BENCHMARK(try_by_waiters)->Arg(1)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
