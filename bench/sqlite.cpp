// The embedded store: a pair against two bare transactions of the same kind, how soon a lock passes
// from process to process, sixteen processes on locks of their own, and a long queue against a
// short one. Needs no server; works in a folder below TMPDIR.
#include "bare_sqlite.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"
#include "support/temporary_folder.hpp"
#include "timing.hpp"

#include <holdfast/holdfast.hpp>

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using bench::microseconds;
using bench::note_times;
using bench::percentile;
using bench::stopwatch;
using holdfast::test::forked_process;
using holdfast::test::shared_page;
using holdfast::test::temporary_folder;
using namespace std::chrono_literals;

std::string url_in(const temporary_folder& folder) {
  return "sqlite:" + (folder.path() / "locks.db").string();
}

// Of all threads of this process: what other processes do at the same time does not count.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

void release(holdfast::lease held) {
  if (!held.release()) throw std::runtime_error("a release failed");
}

// All in alternating blocks of some hundred, so that other load affects all. Bare transactions with
// the page size of this store, with SQLite's own default, and single statements, which is the least
// that SQLite can do.
void pair(benchmark::State& state) {
  constexpr int turn = 250;
  const temporary_folder folder;
  const auto client = holdfast::client::open(url_in(folder)).value();
  holdfast::mutex stock(client, "stock/42");
  bench::bare_sqlite same((folder.path() / "same.db").string(), 1024);
  bench::bare_sqlite usual((folder.path() / "usual.db").string(), 4096);
  bench::bare_sqlite least((folder.path() / "least.db").string(), 1024);
  const auto twice = [](bench::bare_sqlite& bare) {
    bare.transaction();
    bare.transaction();
  };
  std::array<std::vector<double>, 4> times;
  for (auto _ : state) {
    note_times(times[0], turn, [&] { release(stock.acquire().value()); });
    note_times(times[1], turn, [&] { twice(same); });
    note_times(times[2], turn, [&] { twice(usual); });
    note_times(times[3], turn, [&] {
      least.statement();
      least.statement();
    });
  }
  const double ours = percentile(times[0], 0.5);
  state.counters["us"] = ours;
  state.counters["p99_us"] = percentile(times[0], 0.99);
  state.counters["bare_us"] = percentile(times[1], 0.5);
  state.counters["bare_p99_us"] = percentile(times[1], 0.99);
  state.counters["usual_us"] = percentile(times[2], 0.5);
  state.counters["x_bare"] = ours / percentile(times[1], 0.5);
  state.counters["x_usual"] = ours / percentile(times[2], 0.5);
  state.counters["least_us"] = percentile(times[3], 0.5);
  state.counters["x_least"] = ours / percentile(times[3], 0.5);
}
BENCHMARK(pair)->Iterations(80)->Unit(benchmark::kMillisecond);

// Two processes pass one fair lock back and forth: from the call of release() in one to the return
// of acquire() in the other.
struct relay {
  static constexpr int rounds = 5'000;
  std::atomic<stopwatch::rep> released{0};
  std::atomic<int> last{-1};
  std::atomic<int> ready{0};
  std::array<std::atomic<stopwatch::rep>, 2 * rounds> took{};
  std::atomic<std::size_t> count{0};
};

void run_relay(relay& track, const std::string& url, int self) {
  const auto client = holdfast::client::open(url).value();
  holdfast::mutex baton(client, "baton", {.fair = true});
  ++track.ready;
  while (track.ready < 2) std::this_thread::yield();
  for (int i = 0; i < relay::rounds; ++i) {
    auto lease = baton.acquire().value();
    const stopwatch::rep now = stopwatch::now().time_since_epoch().count();
    if (track.last.exchange(self) == 1 - self) {
      track.took.at(track.count++) = now - track.released;
    }
    // Until the other process waits, so that there is a waiter to hand over to.
    while (!lease.wanted().stop_requested() && track.ready == 2) std::this_thread::yield();
    track.released = stopwatch::now().time_since_epoch().count();
    release(std::move(lease));
  }
  --track.ready;
}

void hand_over(benchmark::State& state) {
  std::vector<double> took;
  for (auto _ : state) {
    const temporary_folder folder;
    const shared_page<relay> track;
    std::array<forked_process, 2> runners;
    for (int i = 0; i < 2; ++i) {
      runners.at(static_cast<std::size_t>(i)) =
          forked_process([&, i] { run_relay(*track, url_in(folder), i); });
    }
    for (auto& each : runners) {
      if (each.wait() != 0) throw std::runtime_error("a process failed");
    }
    for (std::size_t i = 0; i < track->count; ++i) {
      took.push_back(microseconds(stopwatch::duration(track->took.at(i))));
    }
  }
  state.counters["p50_us"] = percentile(took, 0.5);
  state.counters["p99_us"] = percentile(took, 0.99);
}
BENCHMARK(hand_over)->Iterations(1)->Unit(benchmark::kMillisecond);

// Sixteen processes, each on a lock of its own: does anybody starve?
struct shared_run {
  static constexpr int processes = 16;
  std::atomic<int> ready{0};
  std::array<std::atomic<long>, processes> pairs{};
  std::array<std::atomic<double>, processes> longest{};
};

void run_alone(shared_run& all, const std::string& url, int self) {
  constexpr auto length = 3s;
  const auto at = static_cast<std::size_t>(self);
  const auto client = holdfast::client::open(url).value();
  holdfast::mutex own(client, "own/" + std::to_string(self));
  release(own.acquire().value());
  ++all.ready;
  while (all.ready < shared_run::processes) std::this_thread::yield();
  const auto end = stopwatch::now() + length;
  for (auto start = stopwatch::now(); start < end;) {
    release(own.acquire().value());
    const auto now = stopwatch::now();
    all.longest.at(at) = std::max(all.longest.at(at).load(), microseconds(now - start));
    ++all.pairs.at(at);
    start = now;
  }
}

void own_locks(benchmark::State& state) {
  const shared_page<shared_run> all;
  for (auto _ : state) {
    const temporary_folder folder;
    std::vector<forked_process> processes;
    for (int i = 0; i < shared_run::processes; ++i) {
      processes.emplace_back([&, i] { run_alone(*all, url_in(folder), i); });
    }
    for (auto& each : processes) {
      if (each.wait() != 0) throw std::runtime_error("a process failed");
    }
  }
  double sum = 0;
  double least = 1e18;
  double longest = 0;
  for (std::size_t i = 0; i < shared_run::processes; ++i) {
    const auto pairs = static_cast<double>(all->pairs.at(i));
    sum += pairs;
    least = std::min(least, pairs);
    longest = std::max(longest, all->longest.at(i).load());
  }
  state.counters["pairs_per_s"] = sum / 3;
  state.counters["longest_ms"] = longest / 1'000;
  state.counters["least_share"] = least / (sum / shared_run::processes);
}
BENCHMARK(own_locks)->Iterations(1)->Unit(benchmark::kMillisecond);

// What it costs to pass a lock on, as processor time per grant, if each former holder queues again:
// the queue keeps its length.
class line {
 public:
  static constexpr int grants = 4'000;

  line(const holdfast::client& client, int length)
      : length_(length), lock_(client, "line", {.fair = true}) {}

  double microseconds_each() {
    auto held = lock_.acquire().value();
    for (int i = 0; i < length_; ++i) queue();
    const auto start = processor_time();
    release(std::move(held));
    for (int seen = granted_; seen < grants; seen = granted_) granted_.wait(seen);
    const double each = microseconds(processor_time() - start) / grants;
    for (int seen = ended_; seen < length_; seen = ended_) ended_.wait(seen);
    return each;
  }

 private:
  void queue() {
    lock_.async_acquire({}, {}, [this](holdfast::result<holdfast::lease> lease) {
      const int number = ++granted_;
      if (number <= grants) {
        queue();
        if (number == grants) granted_.notify_one();
        return;  // the lease ends here, and the next is granted
      }
      lease.value() = {};
      if (++ended_ == length_) ended_.notify_one();
    });
  }

  const int length_;
  holdfast::mutex lock_;
  std::atomic<int> granted_{0};
  std::atomic<int> ended_{0};
};

// The lengths in turn, round by round, so that other load affects all.
void waiters(benchmark::State& state) {
  constexpr std::array<int, 4> lengths{10, 100, 1'000, 10'000};
  std::array<std::vector<double>, lengths.size()> times;
  for (auto _ : state) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const temporary_folder folder;
      const auto client = holdfast::client::open(url_in(folder)).value();
      times.at(i).push_back(line(client, lengths.at(i)).microseconds_each());
    }
  }
  const double shortest = percentile(times.front(), 0.5);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string length = std::to_string(lengths.at(i));
    state.counters["cpu_us_" + length] = percentile(times.at(i), 0.5);
    if (i > 0) state.counters["x_" + length] = percentile(times.at(i), 0.5) / shortest;
  }
}
BENCHMARK(waiters)->Iterations(9)->Unit(benchmark::kMillisecond);

}  // namespace
