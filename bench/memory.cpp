// What the interfaces cost when the engine costs next to nothing: the memory store, one thread, no
// contention. Counters: allocations per pair, and the processor time as a multiple of a bare
// std::mutex pair and of a bare pair of map operations, measured in the same run.
#include <holdfast/holdfast.hpp>

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

namespace {

std::atomic<std::uint64_t> allocations{0};

}  // namespace

void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* made = std::malloc(size)) return made;
  throw std::bad_alloc();
}
void operator delete(void* gone) noexcept { std::free(gone); }
void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }

namespace {

// Processor time of this thread: other load on the machine is not a cost of a lock.
double nanoseconds_used() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Pair>
double measure(Pair&& pair) {
  constexpr int rounds = 200'000;
  const double start = nanoseconds_used();
  for (int i = 0; i < rounds; ++i) pair();
  return (nanoseconds_used() - start) / rounds;
}

struct baselines {
  double mutex_pair;
  double map_pair;
};

const baselines& baseline() {
  static const baselines measured = [] {
    std::mutex plain;
    std::map<std::string, int> table;
    const std::string key = "stock/42";
    return baselines{measure([&] {
                       plain.lock();
                       benchmark::DoNotOptimize(plain);
                       plain.unlock();
                     }),
                     measure([&] {
                       {
                         const std::lock_guard lock(plain);
                         table.emplace(key, 1);
                       }
                       const std::lock_guard lock(plain);
                       table.erase(key);
                     })};
  }();
  return measured;
}

// Runs the pair and reports it against the baselines.
template <class Pair>
void compare(benchmark::State& state, Pair&& pair) {
  const baselines& bare = baseline();
  for (int i = 0; i < 1'000; ++i) pair();
  const std::uint64_t before = allocations.load();
  const double start = nanoseconds_used();
  for (auto _ : state) pair();
  const auto rounds = static_cast<double>(state.iterations());
  const double each = (nanoseconds_used() - start) / rounds;
  state.counters["allocations"] = static_cast<double>(allocations.load() - before) / rounds;
  state.counters["x_std_mutex"] = each / bare.mutex_pair;
  state.counters["x_map"] = each / bare.map_pair;
}

holdfast::client open() { return holdfast::client::open("memory:").value(); }

void std_mutex(benchmark::State& state) {
  std::mutex plain;
  compare(state, [&] {
    plain.lock();
    plain.unlock();
  });
}
BENCHMARK(std_mutex);

void value_face(benchmark::State& state) {
  const auto client = open();
  holdfast::mutex stock(client, "stock/42");
  compare(state, [&] { benchmark::DoNotOptimize(stock.acquire()); });
}
BENCHMARK(value_face);

// The same with everything counted; the pair without is measured alternately, so that other load
// affects both.
void value_face_counted(benchmark::State& state) {
  const auto numbers = std::make_shared<holdfast::metrics>();
  const auto plain = open();
  const auto counted = holdfast::client::open("memory:", {.metrics = numbers}).value();
  holdfast::mutex bare(plain, "stock/42");
  holdfast::mutex stock(counted, "stock/42");
  constexpr int turn = 1'000;
  double bare_time = 0;
  double time = 0;
  double turns = 0;
  for (auto _ : state) {
    const double start = nanoseconds_used();
    for (int i = 0; i < turn; ++i) benchmark::DoNotOptimize(bare.acquire());
    const double between = nanoseconds_used();
    for (int i = 0; i < turn; ++i) benchmark::DoNotOptimize(stock.acquire());
    bare_time += between - start;
    time += nanoseconds_used() - between;
    turns += turn;
  }
  state.counters["bare_ns"] = bare_time / turns;
  state.counters["counted_ns"] = time / turns;
  state.counters["more_percent"] = (time / bare_time - 1) * 100;
}
BENCHMARK(value_face_counted);

void value_face_awaiting_the_release(benchmark::State& state) {
  const auto client = open();
  holdfast::mutex stock(client, "stock/42");
  compare(state, [&] { benchmark::DoNotOptimize(stock.acquire()->release()); });
}
BENCHMARK(value_face_awaiting_the_release);

void std_face(benchmark::State& state) {
  const auto client = open();
  holdfast::mutex stock(client, "stock/42");
  compare(state, [&] {
    stock.lock();
    stock.unlock();
  });
}
BENCHMARK(std_face);

void fair(benchmark::State& state) {
  const auto client = open();
  holdfast::mutex stock(client, "stock/42", {.fair = true});
  compare(state, [&] { benchmark::DoNotOptimize(stock.acquire()); });
}
BENCHMARK(fair);

void reader(benchmark::State& state) {
  const auto client = open();
  holdfast::shared_mutex price(client, "price");
  compare(state, [&] { benchmark::DoNotOptimize(price.acquire_shared()); });
}
BENCHMARK(reader);

void permit(benchmark::State& state) {
  const auto client = open();
  holdfast::semaphore api(client, "api", {.max = 8});
  compare(state, [&] { benchmark::DoNotOptimize(api.acquire()); });
}
BENCHMARK(permit);

void re_entry(benchmark::State& state) {
  const auto client = open();
  holdfast::recursive_mutex tree(client, "tree");
  tree.lock();
  compare(state, [&] {
    tree.lock();
    tree.unlock();
  });
  tree.unlock();
}
BENCHMARK(re_entry);

// Bytes that each of 10,000 waiting acquisitions takes, in the local queue or in the engine's
// queue.
void pending(benchmark::State& state, bool fair) {
  constexpr int many = 10'000;
  double bytes = 0;
  for (auto _ : state) {
    const auto client = open();
    holdfast::mutex stock(client, "stock/42", {.fair = fair});
    auto held = stock.acquire();
    std::atomic<int> answered{0};
    const auto before = mallinfo2();
    for (int i = 0; i < many; ++i) {
      stock.async_acquire({}, {}, [&](const holdfast::result<holdfast::lease>&) {
        if (answered.fetch_add(1) == many - 1) answered.notify_one();
      });
    }
    const auto after = mallinfo2();
    bytes = static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd);
    held = holdfast::failure(holdfast::errc::busy);
    for (int seen = answered; seen < many; seen = answered) answered.wait(seen);
  }
  state.counters["bytes_each"] = bytes / many;
}
BENCHMARK_CAPTURE(pending, in_local_queue, false)->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pending, in_the_engines_line, true)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
