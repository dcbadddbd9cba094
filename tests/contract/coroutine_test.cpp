// co_await, in every spelling that the manual shows. GCC 12 destroys aggregate temporaries of such
// an expression twice where they have anything to destroy: run under AddressSanitizer.
#include "contract/contract.hpp"
#include "support/task.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(coroutines);

struct outcomes {
  std::vector<std::string> all;
  template <class T>
  void add(const result<T>& answer) {
    all.push_back(code_of(answer));
  }
};

task every_spelling(const client& a, std::stop_token token, outcomes& out) {
  mutex stock(a, "stock/42", {.ttl = 10s});
  {
    auto lease = co_await stock.async_acquire({.wait = patience});
    out.add(lease);
  }
  {
    auto lease = co_await stock.async_acquire({.wait = patience}, token);
    out.add(lease);
  }
  {
    holdfast::result<holdfast::lease> l = co_await stock.async_acquire({.wait = patience}, token);
    out.add(l);
  }
  {
    auto lease = co_await stock.async_acquire();
    out.add(lease);
  }
  {
    const acquire_options options{.wait = patience};
    auto lease = co_await stock.async_acquire(options, token);
    out.add(lease);
  }
  if (auto lease =
          co_await stock.async_acquire(acquire_options{.wait = patience}, std::stop_token{})) {
    out.add(lease);
    EXPECT_TRUE(lease->valid());
  }
  out.add(co_await stock.async_acquire({}, token));
  {
    auto later = stock.async_acquire({.wait = patience}, token);
    auto lease = co_await std::move(later);
    out.add(lease);
  }
  EXPECT_EQ((co_await stock.async_acquire({.wait = patience})).value().name(), "stock/42");
}

TEST_P(coroutines, every_spelling_of_the_manual_works) {
  // Broken: a double free in the most natural line of the library.
  const client a = open();
  outcomes out;
  std::stop_source stop;
  const task coroutine = every_spelling(a, stop.get_token(), out);
  ASSERT_TRUE(coroutine.finishes(4 * patience));
  EXPECT_EQ(out.all, std::vector<std::string>(8, "ok"));
  EXPECT_TRUE(becomes_free(a, "stock/42"));
}

task every_primitive(const client& a, outcomes& out) {
  shared_mutex price(a, "price");
  if (a.caps().shared) {
    auto reading = co_await price.async_acquire_shared({.wait = patience});
    out.add(reading);
  } else {
    out.all.emplace_back("ok");
  }
  {
    auto writing = co_await price.async_acquire({.wait = patience});
    out.add(writing);
  }
  semaphore api(a, "api", {.max = 3});
  if (a.caps().permits) {
    auto permits = co_await api.async_acquire({.wait = patience}, {}, 2);
    out.add(permits);
    out.add(co_await api.async_acquire({.wait = 0s}, {}, 2));
    out.add(co_await api.async_acquire({.wait = 0s}, {}, 4));
  } else {
    out.all.insert(out.all.end(), {"ok", "busy", "invalid"});
  }
  election scheduler(a, "scheduler", "host-7");
  if (a.caps().reports_holders) {
    auto leader = co_await scheduler.async_campaign();
    out.add(leader);
  } else {
    out.all.emplace_back("ok");
  }
}

TEST_P(coroutines, every_primitive_can_be_awaited) {
  // Broken: one of the faces lacks a form.
  const client a = open();
  outcomes out;
  const task coroutine = every_primitive(a, out);
  ASSERT_TRUE(coroutine.finishes(4 * patience));
  EXPECT_THAT(out.all, testing::ElementsAre("ok", "ok", "ok", "busy", "invalid", "ok"));
}

task times_out(mutex& stock, std::stop_token token, outcomes& out, flag& last) {
  out.add(co_await stock.async_acquire({.wait = 0s}, token));
  out.add(co_await stock.async_acquire({.wait = 300ms}, token));
  out.add(co_await stock.async_acquire({.wait = -1s}, token));
  last.raise();
  out.add(co_await stock.async_acquire({}, token));
}

TEST_P(coroutines, failures_are_values) {
  // Broken: an error terminates the coroutine instead of being answered.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock/42");
  const auto held = mutex(b, "stock/42").acquire();
  ASSERT_THAT(held, succeeds());
  outcomes out;
  std::stop_source stop;
  flag last;
  const task coroutine = times_out(stock, stop.get_token(), out, last);
  ASSERT_TRUE(last.wait());
  ASSERT_TRUE(has_waiters(b, "stock/42", 1));
  stop.request_stop();
  ASSERT_TRUE(coroutine.finishes(4 * patience));
  EXPECT_EQ(out.all.front(), "busy");
  EXPECT_EQ(out.all.back(), "cancelled");
}

task counts(mutex& stock, int rounds, int& counter) {
  for (int i = 0; i < rounds; ++i) {
    const auto held = co_await stock.async_acquire();
    EXPECT_THAT(held, succeeds());
    ++counter;
  }
}

TEST_P(coroutines, many_coroutines_need_no_threads) {
  // Broken: a waiting coroutine costs a thread, or one starves the others.
  const client a = open();
  mutex stock(a, "stock/42");
  int counter = 0;  // guarded by the lock
  constexpr int coroutines_at_once = 50;
  constexpr int rounds = 10;
  std::vector<task> tasks;
  tasks.reserve(coroutines_at_once);
  for (int i = 0; i < coroutines_at_once; ++i) tasks.push_back(counts(stock, rounds, counter));
  for (const task& each : tasks) ASSERT_TRUE(each.finishes(4 * patience));
  EXPECT_EQ(counter, coroutines_at_once * rounds);
}

task moves_the_lease(mutex& stock, std::promise<lease>& out) {
  auto held = co_await stock.async_acquire();
  EXPECT_THAT(held, succeeds());
  out.set_value(*std::move(held));
}

TEST_P(coroutines, a_lease_moves_from_a_coroutine_to_a_thread) {
  // Broken: ownership is bound to where it was acquired.
  const client a = open();
  mutex stock(a, "stock/42");
  std::promise<lease> out;
  auto future = out.get_future();
  const task coroutine = moves_the_lease(stock, out);
  lease held = future.get();
  EXPECT_TRUE(held.valid());
  EXPECT_THAT(held.release(), succeeds());
  ASSERT_TRUE(coroutine.finishes(4 * patience));
}

}  // namespace
}  // namespace holdfast::test
