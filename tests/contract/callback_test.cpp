// User code that the library calls: where it runs, and what it may do there.
#include "contract/contract.hpp"
#include "support/recording_observer.hpp"
#include "support/task.hpp"

#include <holdfast/spi/function.hpp>

#include <condition_variable>
#include <deque>
#include <thread>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(callbacks);

// One thread that runs the tasks it is given: a program's own executor.
class worker {
 public:
  worker() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  executor handle() {
    return [this](spi::function<void()> work) {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(work));
      changed_.notify_all();
    };
  }
  [[nodiscard]] std::thread::id id() const { return thread_.get_id(); }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !queue_.empty(); })) {
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<spi::function<void()>> queue_;  // guarded by mutex_
  std::jthread thread_;
};

TEST_P(callbacks, one_that_throws_is_an_event_and_harms_nobody) {
  // Broken: an exception in user code ends the thread that serves everybody.
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  const client a = open(options);
  mutex stock(a, "stock");
  stock.async_acquire({}, {}, [](result<lease> held) {
    EXPECT_THAT(held, succeeds());
    throw std::runtime_error("callback");
  });
  EXPECT_TRUE(seen->sees(event_kind::callback_threw));
  // The lease that it had was released during stack unwinding.
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
  reply<lease> again;
  stock.async_acquire({}, {}, again.callback());
  EXPECT_THAT(again.future.get(), succeeds());
}

TEST_P(callbacks, a_blocking_call_in_a_callback_is_refused) {
  // Broken: the thread that would bring the answer waits for it.
  const client a = open();
  mutex stock(a, "stock");
  mutex other(a, "other");
  latch start(a, "start");
  flag done;
  stock.async_acquire({}, {}, [&](result<lease> held) {
    EXPECT_THAT(other.acquire(), fails_with(errc::would_deadlock));
    EXPECT_EQ(thrown_by([&] { other.lock(); }), "would deadlock");
    EXPECT_THAT(a.inspect("stock"), fails_with(errc::would_deadlock));
    if (a.caps().latches) {
      EXPECT_THAT(start.wait(), fails_with(errc::would_deadlock));
    }
    EXPECT_THAT(held->release(), fails_with(errc::would_deadlock));
    done.raise();
  });
  ASSERT_TRUE(done.wait());
  // Released all the same, without waiting for the answer.
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

TEST_P(callbacks, an_asynchronous_call_in_a_callback_is_fine) {
  // Broken: a chain of asynchronous steps.
  const client a = open();
  mutex one(a, "one");
  mutex two(a, "two");
  reply<lease> last;
  one.async_acquire({}, {}, [&](result<lease> first) {
    ASSERT_THAT(first, succeeds());
    two.async_acquire({}, {}, [&, kept = *std::move(first)](result<lease> second) {
      EXPECT_TRUE(kept.valid());
      last.callback()(std::move(second));
    });
  });
  EXPECT_THAT(last.future.get(), succeeds());
}

task tells_thread(mutex& stock, std::thread::id& resumed_on) {
  const auto held = co_await stock.async_acquire();
  resumed_on = std::this_thread::get_id();
}

TEST_P(callbacks, they_run_on_the_executor_that_was_given) {
  // Broken: a program's single-threaded state is touched by another thread.
  worker own;
  client_options options;
  options.executor = own.handle();
  client a = open(options);
  mutex stock(a, "stock");
  std::promise<std::thread::id> called;
  stock.async_acquire({}, {},
                      [&](const result<lease>&) { called.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(called.get_future().get(), own.id());
  std::thread::id resumed_on;
  const task coroutine = tells_thread(stock, resumed_on);
  ASSERT_TRUE(coroutine.finishes());
  EXPECT_EQ(resumed_on, own.id());
  std::promise<std::thread::id> latched;
  latch start(a, "start");
  if (a.caps().latches) {
    ASSERT_THAT(start.set(1), succeeds());
    start.async_wait({}, {},
                     [&](const result<void>&) { latched.set_value(std::this_thread::get_id()); });
    ASSERT_THAT(start.count_down(), succeeds());
    EXPECT_EQ(latched.get_future().get(), own.id());
  }
  // Blocking calls are allowed there: it is the program's thread.
  std::promise<std::string> blocked;
  stock.async_acquire({}, {}, [&](const result<lease>&) {
    blocked.set_value(code_of(mutex(a, "other").acquire({.wait = patience})));
  });
  EXPECT_EQ(blocked.get_future().get(), "ok");
  a.close();
}

TEST_P(callbacks, an_executor_that_refuses_is_an_event) {
  // Broken: a program's full queue throws into the engine's thread.
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  options.executor = [](const spi::function<void()>&) { throw std::runtime_error("full"); };
  const client a = open(options);
  mutex stock(a, "stock");
  stock.async_acquire({}, {}, [](const result<lease>&) { FAIL() << "nobody ran it"; });
  EXPECT_TRUE(seen->sees(event_kind::callback_threw));
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

TEST_P(callbacks, the_end_of_a_subscription_is_the_end_of_its_calls) {
  // Broken: a sink is called after its target was destroyed.
  const client a = open();
  if (!a.caps().supports_listing) return;
  mutex stock(a, "stock");
  for (int round = 0; round < 20; ++round) {
    auto counted = std::make_unique<std::atomic<int>>(0);
    auto watching = a.observe("stock", [&](const lock_event&) { counted->fetch_add(1); });
    ASSERT_THAT(watching, succeeds());
    for (int i = 0; i < 5; ++i) EXPECT_THAT(stock.acquire(), succeeds());
    watching->reset();
    counted.reset();
  }
}

}  // namespace
}  // namespace holdfast::test
