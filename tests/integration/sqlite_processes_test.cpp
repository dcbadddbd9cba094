// The embedded store among processes: exclusion, order, hand-over, and what happens to the rest when
// some are killed.
#include "integration/sqlite_harness.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"
#include "support/telephone.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <random>
#include <vector>

namespace holdfast::test {
namespace {

// A counter in a plain file: read, add one, write. Wrong as soon as two do it at once.
class file_counter {
 public:
  explicit file_counter(const std::filesystem::path& folder) : path_(folder / "counter") {
    std::ofstream(path_) << 0;
  }
  [[nodiscard]] int read() const {
    int value = -1;
    std::ifstream(path_) >> value;
    return value;
  }
  void add_one() const {
    const int value = read();
    std::ofstream(path_) << value + 1;
  }

 private:
  std::filesystem::path path_;
};

struct race {
  static constexpr int processes = 16;
  static constexpr int rounds = 500;

  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  std::atomic<std::uint64_t> last_fence{0};
  std::atomic<int> disorders{0};

  void start_together() {
    ++ready;
    while (!go.load()) std::this_thread::yield();
  }
  void start(int count) {
    while (ready.load() < count) std::this_thread::yield();
    go = true;
  }
};

TEST(sqlite_processes, sixteen_times_five_hundred_increments_are_exact) {
  // Broken: exclusion among processes, or the order of fences.
  const embedded_file file;
  const file_counter counter(file.folder());
  const shared_page<race> shared;
  std::vector<forked_process> processes;
  for (int i = 0; i < race::processes; ++i) {
    processes.emplace_back([&, fair = i % 2 == 0] {
      const embedded_client client(file.path());
      shared->start_together();
      for (int round = 0; round < race::rounds; ++round) {
        const auto claim = fair ? client.fair_claim() : client.claim();
        const auto grant = client.acquire(claim);
        if (grant.fence.value() <= shared->last_fence.exchange(grant.fence.value())) {
          ++shared->disorders;
        }
        counter.add_one();
        client.leave(claim);
      }
    });
  }
  shared->start(race::processes);
  for (auto& each : processes) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(counter.read(), race::processes * race::rounds);
  EXPECT_EQ(shared->disorders, 0);
}

struct killing {
  static constexpr int slots = 16;

  std::array<std::atomic<bool>, slots> inside{};
  std::array<std::atomic<int>, slots> steps{};
  std::atomic<std::int64_t> killed_at{0};  // nanoseconds, while the next is awaited
  std::atomic<std::uint64_t> fence_killed{0};
  std::array<std::int64_t, 4096> took{};  // from a kill to the next holder
  std::atomic<int> kills{0};
  std::atomic<std::uint64_t> last_fence{0};
  std::atomic<int> disorders{0};
  std::atomic<bool> enough{false};
};


TEST(sqlite_processes, fifty_waiting_processes_are_served_in_order_and_killed_ones_skipped) {
  // Broken: fairness, or a dead waiter that stalls the line.
  constexpr int waiters = 50;
  struct record {
    std::array<std::atomic<int>, waiters> order{};
    std::atomic<int> served{0};
  };
  const embedded_file file;
  const shared_page<record> shared;
  const telephone first_line;
  forked_process holder([&] {
    const embedded_client client(file.path());
    const auto claim = client.fair_claim();
    client.acquire(claim);
    first_line.say_back('h');
    static_cast<void>(first_line.hear_back());
    client.leave(claim);
  });
  ASSERT_EQ(first_line.hear(), 'h');
  std::vector<forked_process> processes;
  for (int i = 0; i < waiters; ++i) {
    const telephone line;
    processes.emplace_back([&, i] {
      const embedded_client client(file.path());
      const auto claim = client.fair_claim();
      const auto wakeup = std::make_shared<noting_wakeup>();
      if (!queued(client.attempt(claim, wakeup))) throw std::runtime_error("not queued");
      line.say_back('q');
      client.acquire(claim, wakeup);
      shared->order[static_cast<std::size_t>(shared->served++)] = i;
      client.leave(claim);
    });
    ASSERT_EQ(line.hear(), 'q');
  }
  std::vector<int> expected;
  for (int i = 0; i < waiters; ++i) {
    if (i % 5 == 2 || i == 0) {
      processes[static_cast<std::size_t>(i)].kill();
    } else {
      expected.push_back(i);
    }
  }
  first_line.say('g');
  EXPECT_EQ(holder.wait(), 0);
  for (int i = 0; i < waiters; ++i) {
    if (i % 5 == 2 || i == 0) continue;
    EXPECT_EQ(processes[static_cast<std::size_t>(i)].wait(), 0);
  }
  std::vector<int> order;
  for (int i = 0; i < shared->served; ++i)
    order.push_back(shared->order[static_cast<std::size_t>(i)]);
  EXPECT_EQ(order, expected);
}

TEST(sqlite_processes, sixty_four_processes_on_one_lock_and_on_their_own) {
  // Broken: a limit of descriptors, connections or patience below what one machine runs.
  constexpr int count = 64;
  const embedded_file file;
  const file_counter counter(file.folder());
  const shared_page<race> shared;
  std::vector<forked_process> processes;
  for (int i = 0; i < count; ++i) {
    processes.emplace_back([&, i] {
      const embedded_client client(file.path());
      shared->start_together();
      for (int round = 0; round < 20; ++round) {
        const auto own = client.claim("own/" + std::to_string(i));
        client.acquire(own);
        const auto common = client.claim("common");
        client.acquire(common);
        counter.add_one();
        client.leave(common);
        client.leave(own);
      }
    });
  }
  shared->start(count);
  for (auto& each : processes) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(counter.read(), count * 20);
}

}  // namespace
}  // namespace holdfast::test
