// What is measured for a SQL store and its bare driver on the same server: a pair against two
// prepared single-row transactions, how soon a lock passes from client to client in units of one of
// them, and 64 threads on one lock against a connection per thread that polls.
#pragma once

#include "timing.hpp"

#include <holdfast/holdfast.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

// Alternately, so that other load affects both. `row`: has take() and give().
template <class Row>
void pair(benchmark::State& state, const std::string& url, Row&& row) {
  const auto client = holdfast::client::open(url).value();
  holdfast::mutex stock(client, "stock/42");
  static_cast<void>(stock.acquire().value());
  std::vector<double> ours;
  std::vector<double> bare;
  for (auto _ : state) {
    note_times(ours, 50, [&] {
      if (!stock.acquire().value().release()) throw std::runtime_error("release");
    });
    note_times(bare, 50, [&] {
      row.take();
      row.give();
    });
  }
  state.counters["us"] = percentile(ours, 0.5);
  state.counters["p99_us"] = percentile(ours, 0.99);
  state.counters["bare_us"] = percentile(bare, 0.5);
  state.counters["bare_p99_us"] = percentile(bare, 0.99);
  state.counters["x_bare"] = percentile(ours, 0.5) / percentile(bare, 0.5);
}

// From the call of release() in one client to the return of acquire() in the other, whose thread waits.
template <class Row>
void hand_over(benchmark::State& state, const std::string& url, Row&& row) {
  const auto a = holdfast::client::open(url).value();
  const auto b = holdfast::client::open(url).value();
  std::vector<double> ours;
  std::vector<double> bare;
  const holdfast::lock_options options{.fair = a.caps().fair};
  std::array<holdfast::mutex, 2> sides{holdfast::mutex(a, "baton", options),
                                       holdfast::mutex(b, "baton", options)};
  auto held = sides[0].acquire().value();
  std::size_t next = 1;
  for (auto _ : state) {
    stopwatch::time_point arrived;
    holdfast::lease passed;
    std::jthread waiter([&] {
      auto lease = sides.at(next).acquire();
      arrived = stopwatch::now();
      passed = std::move(lease.value());
    });
    while (!held.wanted().stop_requested()) std::this_thread::yield();
    const auto start = stopwatch::now();
    if (!held.release()) throw std::runtime_error("release");
    waiter.join();
    ours.push_back(microseconds(arrived - start));
    held = std::move(passed);
    next = 1 - next;
    note_times(bare, 1, [&] { row.give(); });
  }
  state.counters["p50_us"] = percentile(ours, 0.5);
  state.counters["p99_us"] = percentile(ours, 0.99);
  state.counters["bare_write_us"] = percentile(bare, 0.5);
  state.counters["x_write"] = percentile(ours, 0.5) / percentile(bare, 0.5);
}

template <class Round>
double rounds_per_second(Round&& make_round) {
  constexpr int threads = 64;
  constexpr auto length = 4s;
  std::atomic<long> rounds{0};
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        auto round = make_round();
        ++ready;
        go.wait(false);
        while (!stop) {
          if (round()) ++rounds;
        }
      });
    }
    while (ready < threads) std::this_thread::sleep_for(1ms);
    go = true;
    go.notify_all();
    std::this_thread::sleep_for(length);
    stop = true;
  }
  return static_cast<double>(rounds) / std::chrono::duration<double>(length).count();
}

// One lock, 64 threads of one client; and 64 threads with a connection each (`make_row`) that try every
// 10 ms.
template <class MakeRow>
void contended(benchmark::State& state, const std::string& url, MakeRow&& make_row) {
  for (auto _ : state) {
    const auto client = holdfast::client::open(url).value();
    holdfast::mutex stock(client, "stock/42");
    const double ours = rounds_per_second(
        [&] { return [&] { return stock.acquire().value().release().has_value(); }; });
    const double polling = rounds_per_second([&] {
      return [row = make_row()] {
        if (!row->take()) {
          std::this_thread::sleep_for(10ms);
          return false;
        }
        row->give();
        return true;
      };
    });
    state.counters["grants_per_s"] = ours;
    state.counters["polling_per_s"] = polling;
    state.counters["x_polling"] = ours / polling;
  }
}

// A server from lab/, with durable commits, started when something is measured.
template <class Server>
Server& durable() {
  static Server one({.durable = true});
  return one;
}

// All of that for each strategy. `Engine`: has url(strategy) and row(name).
template <class Engine>
bool measure_strategies() {
  using benchmark::State;
  for (const std::string strategy : {"lease", "session", "row"}) {
    const auto add = [&](const std::string& name, int rounds, auto&& work) {
      benchmark::RegisterBenchmark((name + "/" + strategy).c_str(), work)
          ->Iterations(rounds)
          ->Unit(benchmark::kMillisecond);
    };
    add("pair", 40,
        [strategy](State& state) { pair(state, Engine::url(strategy), *Engine::row("pair")); });
    add("hand_over", 500, [strategy](State& state) {
      hand_over(state, Engine::url(strategy), *Engine::row("baton"));
    });
    add("contended", 1, [strategy](State& state) {
      contended(state, Engine::url(strategy), [] { return Engine::row("contended"); });
    });
  }
  return true;
}

}  // namespace bench
