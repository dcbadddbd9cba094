// Everything that blocks has a form for coroutines, which works on the client's own thread; and the
// coroutine resumes where it was told to.
#include "contract/contract.hpp"
#include "support/task.hpp"

#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(asynchronous);

using answers = std::vector<std::string>;

task locks_throughout(const client& a, answers& out) {
  mutex stock(a, "stock");
  auto held = co_await stock.async_acquire({.wait = patience});
  // On the client's own thread now, where blocking is refused.
  out.push_back(code_of(held->release()));
  held = co_await stock.async_acquire({.wait = patience});
  out.push_back(code_of(co_await held->async_release()));
  out.push_back(code_of(co_await held->async_release()));
  mutex other(a, "other");
  multi_lock both({stock, other});
  auto leases = co_await both.async_acquire({.wait = patience});
  out.push_back(code_of(leases));
  out.push_back(code_of(co_await stock.async_acquire({.wait = 0s})));
  out.push_back(code_of(co_await leases->async_release()));
}

TEST_P(asynchronous, a_coroutine_releases_and_takes_several) {
  // Broken: after co_await there is no way to release the lock and learn the result.
  const client a = open();
  answers out;
  const task done = locks_throughout(a, out);
  ASSERT_TRUE(done.finishes());
  EXPECT_EQ(out, (answers{"would deadlock", "ok", "not held", "ok", "busy", "ok"}));
  EXPECT_TRUE(becomes_free(a, "stock"));
  EXPECT_TRUE(becomes_free(a, "other"));
}

task latch_throughout(const client& a, answers& out) {
  latch start(a, "start");
  out.push_back(code_of(co_await start.async_set(2)));
  out.push_back(code_of(co_await start.async_set(0)));
  auto left = co_await start.async_count_down();
  out.push_back(left ? std::to_string(*left) : code_of(left));
  auto count = co_await start.async_count();
  out.push_back(count ? std::to_string(count->value_or(99)) : code_of(count));
  auto waited = co_await start.async_wait({.wait = 0s});
  while (!waited && waited.error() == errc::unavailable) {  // a server slower than a try waits for
    waited = co_await start.async_wait({.wait = 0s});
  }
  out.push_back(code_of(waited));
  out.push_back(code_of(co_await start.async_count_down(1, countdown_id::from("last"))));
  out.push_back(code_of(co_await start.async_wait({.wait = patience})));
}

TEST_P(asynchronous, a_coroutine_counts_a_latch_down) {
  // Broken: a latch is for blocking threads only.
  const client a = open();
  if (!a.caps().latches) {
    EXPECT_THAT(latch(a, "start").set(1), fails_with(errc::unsupported));
    return;
  }
  answers out;
  const task done = latch_throughout(a, out);
  ASSERT_TRUE(done.finishes());
  EXPECT_EQ(out, (answers{"ok", "invalid", "1", "1", "timed out", "ok", "ok"}));
}

task looks_throughout(const client& a, answers& out) {
  election scheduler(a, "scheduler", "host-7");
  semaphore api(a, "api", {.max = 3});
  shared_mutex price(a, "price");
  auto term = co_await scheduler.async_campaign({.wait = patience});
  auto leader = co_await scheduler.async_leader();
  out.push_back(leader && *leader ? (*leader)->id : code_of(leader));
  auto permit = co_await api.async_acquire({.wait = patience}, {}, 2);
  auto left = co_await api.async_available();
  out.push_back(left ? std::to_string(*left) : code_of(left));
  auto reader = co_await price.async_acquire_shared({.wait = patience});
  out.push_back(code_of(co_await price.async_try_upgrade(*reader)));
  out.push_back(code_of(co_await price.async_downgrade(*reader)));
}

TEST(asynchronous_in_memory, a_coroutine_asks_for_the_leader_and_the_permits) {
  // Broken: election, semaphore and shared_mutex answer would_deadlock in a coroutine.
  const client a = client::open("memory:").value();
  answers out;
  const task done = looks_throughout(a, out);
  ASSERT_TRUE(done.finishes());
  EXPECT_EQ(out, (answers{"host-7", "1", "ok", "ok"}));
}

// What a call answers that is cancelled before it begins; none: not that.
template <class T>
std::optional<errc> cancelled_early(awaitable<T> call) {
  const auto inside = std::move(call).take_inside();
  inside->cancel();
  const auto answered = std::make_shared<std::promise<std::optional<errc>>>();
  auto answer = answered->get_future();
  inside->start(
      [answered](const result<T>& how) {
        answered->set_value(how ? std::nullopt : std::optional(how.error().code));
      },
      {});
  if (answer.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

TEST(asynchronous_in_memory, a_call_that_is_cancelled_before_it_begins_is_answered) {
  // Broken: a cancellation that comes just before the call has begun is lost, and it waits to its end, or forever.
  const client a = client::open("memory:").value();
  mutex lock(a, "x");
  latch start(a, "start");
  ASSERT_THAT(start.set(1), succeeds());
  const auto held = lock.acquire();
  ASSERT_THAT(held, succeeds());
  mutex other(a, "x");
  mutex free(a, "y");
  EXPECT_EQ(cancelled_early(other.async_acquire({.wait = patience})), errc::cancelled);
  EXPECT_EQ(cancelled_early(multi_lock({other, free}).async_acquire({.wait = patience})),
            errc::cancelled);
  EXPECT_EQ(cancelled_early(start.async_wait({.wait = patience})), errc::cancelled);
  EXPECT_EQ(cancelled_early(async_lost(*held)), errc::cancelled);
}

// A thread that runs the tasks it is given.
class task_thread {
 public:
  executor takes() {
    return [this](move_only_function<void()> work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      changed_.notify_all();
    };
  }
  [[nodiscard]] std::thread::id id() const { return thread_.get_id(); }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !work_.empty(); })) {
      auto next = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<move_only_function<void()>> work_;  // guarded by mutex_
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

task resumes_there(mutex& stock, task_thread& there, std::thread::id& on, std::string& blocking) {
  auto held = co_await stock.async_acquire().resume_on(there.takes());
  on = std::this_thread::get_id();
  blocking = code_of(held->release());
}

TEST(asynchronous_in_memory, a_coroutine_resumes_where_it_says) {
  // Broken: resume_on() is ignored, and a blocking call after it is refused.
  const client a = client::open("memory:").value();
  mutex stock(a, "stock");
  task_thread there;
  std::thread::id on;
  std::string blocking;
  const task done = resumes_there(stock, there, on, blocking);
  ASSERT_TRUE(done.finishes());
  EXPECT_EQ(on, there.id());
  EXPECT_EQ(blocking, "ok");
}

// A coroutine type with its own executor, like those of frameworks.
struct bound_task {
  struct promise_type {
    promise_type(task_thread& where, mutex&, std::promise<std::thread::id>&) : there(&where) {}
    bound_task get_return_object() { return {}; }
    [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
    [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    [[nodiscard]] holdfast::executor executor() const { return there->takes(); }

    task_thread* there;
  };
};

bound_task resumes_at_home(task_thread&, mutex& stock, std::promise<std::thread::id>& on) {
  const auto held = co_await stock.async_acquire();
  on.set_value(std::this_thread::get_id());
}

TEST(asynchronous_in_memory, a_coroutine_with_an_executor_resumes_on_it) {
  // Broken: a framework's coroutine resumes on a thread that is not the framework's.
  const client a = client::open("memory:").value();
  mutex stock(a, "stock");
  std::promise<std::thread::id> on;
  task_thread home;
  resumes_at_home(home, stock, on);
  EXPECT_EQ(on.get_future().get(), home.id());
}

task takes_both(multi_lock& both, std::stop_token token, std::string& out) {
  auto leases = co_await both.async_acquire({.wait = patience}, token);
  out = code_of(leases);
}

TEST(asynchronous_in_memory, a_multi_lock_that_waits_can_be_cancelled_and_dropped) {
  // Broken: a coroutine that gives up leaves locks behind, or is resumed after its end.
  const client a = client::open("memory:").value();
  mutex one(a, "one");
  mutex two(a, "two");
  auto held = two.acquire();
  ASSERT_THAT(held, succeeds());
  multi_lock both({one, two});
  std::string out = "waiting";
  std::stop_source stop;
  const task waiting = takes_both(both, stop.get_token(), out);
  EXPECT_TRUE(eventually([&] { return one.acquire({.wait = 0s}).has_value(); }));
  stop.request_stop();
  ASSERT_TRUE(waiting.finishes());
  EXPECT_EQ(out, "cancelled");
  {
    task dropped = takes_both(both, {}, out);
    dropped.destroy();
  }
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_EQ(out, "cancelled");
  EXPECT_TRUE(becomes_free(a, "one"));
  EXPECT_TRUE(becomes_free(a, "two"));
}

}  // namespace
}  // namespace holdfast::test
