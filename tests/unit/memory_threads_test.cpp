// The memory store under threads: nobody is let in beside a holder, no wake-up is lost, and
// destroyed objects are not called.
#include "memory_harness.hpp"

#include <holdfast/spi/reactor.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace holdfast::memory {

namespace {

constexpr int threads = 8;

// Blocks its thread until it is notified.
class waking : public spi::wakeup {
 public:
  void notify(std::optional<spi::granted> grant) noexcept override {
    const std::lock_guard lock(mutex_);
    told_ = true;
    granted_ = granted_ || grant.has_value();
    changed_.notify_one();
  }
  void wanted() noexcept override {}
  void gone(const error&) noexcept override {}

  // True: granted; false: ask again.
  bool wait() {
    std::unique_lock lock(mutex_);
    // Short, because a lone unfair waiter may be overtaken and is notified again only then.
    changed_.wait_for(lock, 20ms, [this] { return told_; });
    told_ = false;
    return granted_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool told_ = false;     // guarded by mutex_
  bool granted_ = false;  // guarded by mutex_
};

// What a core does, without the core: asks, waits, asks again.
void acquire(spi::store& store, const spi::claim_ptr& claim) {
  const auto wakeup = std::make_shared<waking>();
  while (!is_granted(attempt(store, claim, wakeup))) {
    if (wakeup->wait()) return;
  }
}

class memory_threads : public ::testing::Test {
 protected:
  const std::shared_ptr<spi::runtime> runtime = spi::make_reactor();
  std::atomic<std::uint64_t> numbers{1};

  template <class Work>
  static void together(Work work) {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back([&work, i] { work(i); });
  }
};

}  // namespace

TEST_F(memory_threads, a_mutex_admits_one_at_a_time_fair_or_not) {
  constexpr int rounds = 1'000;
  int inside = 0;  // guarded by the lock under test
  int total = 0;   // guarded by the lock under test
  std::uint64_t last_fence = 0;
  together([&](int thread) {
    const auto store = open_or_fail("memory:mutex", runtime);
    for (int round = 0; round < rounds; ++round) {
      const auto claim = make_claim(numbers++, {.fair = thread % 2 == 0});
      acquire(*store, claim);
      EXPECT_EQ(++inside, 1);
      const auto fence = renew(*store, {claim}).value()[0].grant.fence.value();
      EXPECT_GT(fence, std::exchange(last_fence, fence));
      ++total;
      --inside;
      EXPECT_EQ(leave(*store, claim).value(), spi::departure::was_holder);
    }
  });
  EXPECT_EQ(total, threads * rounds);
}

TEST_F(memory_threads, a_semaphore_never_has_too_many_inside) {
  constexpr int rounds = 1'000;
  std::atomic<std::uint32_t> inside{0};
  together([&](int thread) {
    const auto store = open_or_fail("memory:permits", runtime);
    const auto wanted = static_cast<std::uint32_t>(1 + thread % 2);
    for (int round = 0; round < rounds; ++round) {
      const auto claim = make_claim(numbers++, permits(wanted, 3));
      acquire(*store, claim);
      EXPECT_LE(inside += wanted, 3U);
      inside -= wanted;
      static_cast<void>(leave(*store, claim));
    }
  });
}

// Clients come and go while others hand locks to them.
TEST_F(memory_threads, a_closed_client_is_not_called) {
  constexpr int rounds = 300;
  class strict : public waking {
   public:
    void notify(std::optional<spi::granted> grant) noexcept override {
      EXPECT_FALSE(closed.load());
      waking::notify(grant);
    }
    void wanted() noexcept override { EXPECT_FALSE(closed.load()); }
    std::atomic<bool> closed{false};
  };
  const auto keeper = open_or_fail("memory:closing", runtime);
  together([&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      const auto store = open_or_fail("memory:closing", runtime);
      const auto wakeup = std::make_shared<strict>();
      const auto claim = make_claim(numbers++, {.fair = true, .ttl = 100ms});
      const bool held = is_granted(attempt(*store, claim, wakeup));
      if (held || thread % 2 == 0) static_cast<void>(leave(*store, claim));
      store->close();
      wakeup->closed = true;
    }
  });
}

TEST_F(memory_threads, an_ended_subscription_is_not_called) {
  constexpr int rounds = 1'000;
  const auto store = open_or_fail("memory:", runtime);
  together([&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      if (thread % 2 == 0) {
        const auto claim = make_claim(numbers++, {.name = "w" + std::to_string(thread)});
        acquire(*store, claim);
        static_cast<void>(leave(*store, claim));
        continue;
      }
      // Freed on purpose: the sanitizers would catch a late call.
      auto seen = std::make_unique<std::atomic<int>>(0);
      auto watching = store->observe({}, [&count = *seen](const spi::store_event&) { ++count; });
      static_cast<void>(attempt(*store,
                                make_claim(numbers++, {.name = "o" + std::to_string(numbers)}),
                                std::make_shared<waking>()));
      watching->reset();
      seen.reset();
    }
  });
}

}  // namespace holdfast::memory
