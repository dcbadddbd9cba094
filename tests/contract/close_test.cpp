// Closing a client: nobody waits any more, nothing is held any more.
#include "contract/flavours.hpp"
#include "support/task.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(closing);

// A closing client is noticed even by an engine on a slow machine.
client_options with_time_to_close() {
  client_options options;
  options.close_within = patience;
  return options;
}

task waits_for(exclusive_lock& lock, std::string& outcome) {
  const auto held = co_await lock.async_acquire();
  outcome = code_of(held);
}

TEST_P(closing, all_waiters_are_cancelled_before_it_returns) {
  // Broken: a callback is called in a program that has already shut down.
  if (!supported()) return;
  const client a = open();
  client b = open(with_time_to_close());
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  const auto lock = make(b);
  std::string outcome;
  reply<lease> called;
  auto blocked = in_thread([&] { return make(b)->acquire(); });
  ASSERT_TRUE(has_waiters(a, "stock/42", 1));
  lock->async_acquire({}, {}, called.callback());
  const task resumed = waits_for(*lock, outcome);
  EXPECT_TRUE(b.close().empty());
  ASSERT_TRUE(arrives(called.future, 0s));
  EXPECT_THAT(called.future.get(), fails_with(errc::cancelled));
  EXPECT_TRUE(resumed.finished());
  EXPECT_EQ(outcome, "cancelled");
  EXPECT_THAT(blocked.get(), fails_with(errc::cancelled));
  EXPECT_TRUE(has_waiters(a, "stock/42", 0));
}

TEST_P(closing, leases_are_released_and_their_holders_notified) {
  // Broken: a program that ends keeps the others waiting for its ttl.
  if (!supported()) return;
  client a = open(with_time_to_close());
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  EXPECT_TRUE(a.close().empty());
  EXPECT_TRUE(told.raised());
  EXPECT_FALSE(held->valid());
  EXPECT_THAT(held->release(), fails_with(errc::lost));
  EXPECT_THAT(make(b)->acquire({.wait = patience}), succeeds());
}

TEST_P(closing, afterwards_every_call_is_cancelled) {
  // Broken: a call on a closed client hangs.
  if (!supported()) return;
  client a = open();
  const auto lock = make(a);
  EXPECT_TRUE(a.close().empty());
  EXPECT_TRUE(a.close().empty());
  EXPECT_THAT(lock->acquire(), fails_with(errc::cancelled));
  reply<lease> answer;
  lock->async_acquire({}, {}, answer.callback());
  EXPECT_THAT(answer.future.get(), fails_with(errc::cancelled));
  EXPECT_THAT(a.inspect("stock/42"), fails_with(errc::cancelled));
  EXPECT_THAT(a.list(), fails_with(errc::cancelled));
  EXPECT_THAT(a.probe(), fails_with(errc::cancelled));
  EXPECT_THAT(a.revoke("stock/42", revocation::force), fails_with(errc::cancelled));
  EXPECT_THAT(a.observe("stock/42", [](const lock_event&) {}), fails_with(errc::cancelled));
  EXPECT_THAT(make(a)->acquire({.wait = 0s}), fails_with(errc::cancelled));
}

TEST_P(closing, the_last_handle_closes) {
  // Broken: a client that goes out of scope keeps its locks.
  if (!supported()) return;
  const client b = open();
  lease outlives;
  {
    const client a = open();
    const client copy = a;
    auto held = make(copy)->acquire();
    ASSERT_THAT(held, succeeds());
    outlives = std::move(*held);
    EXPECT_TRUE(outlives.valid());
  }
  EXPECT_FALSE(outlives.valid());
  EXPECT_THAT(make(b)->acquire({.wait = patience}), succeeds());
}

TEST_P(closing, a_lock_keeps_its_client_open) {
  // Broken: a factory function that returns a lock returns a dead one.
  if (!supported()) return;
  const client b = open();
  const auto lock = make(open());
  const auto held = lock->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(closing, a_client_may_be_closed_or_dropped_inside_a_callback) {
  // Broken: a thread that waits for itself.
  if (!supported()) return;
  const client b = open();
  {
    auto a = std::make_unique<client>(open());
    const auto lock = make(*a);
    flag closed;
    lock->async_acquire({}, {}, [&](result<lease> held) {
      EXPECT_THAT(held, succeeds());
      a->close();
      EXPECT_TRUE(eventually([&] { return !held->valid(); }));
      closed.raise();
    });
    ASSERT_TRUE(closed.wait());
    EXPECT_THAT(lock->acquire(), fails_with(errc::cancelled));
  }
  flag dropped;
  {
    auto a = std::make_shared<client>(open());
    auto lock = std::shared_ptr<exclusive_lock>(make(*a));
    lock->async_acquire({}, {}, [a, lock, &dropped](result<lease> held) mutable {
      EXPECT_THAT(held, succeeds());
      lock.reset();
      a.reset();
      dropped.raise();
    });
  }
  ASSERT_TRUE(dropped.wait());
  EXPECT_THAT(make(b)->acquire({.wait = patience}), succeeds());
}

TEST_P(closing, many_threads_may_use_a_client_while_it_closes) {
  // Broken: a race between a call and the end.
  if (!supported()) return;
  const client watcher = open();
  for (int round = 0; round < 5; ++round) {
    client a = open(with_time_to_close());
    std::vector<std::jthread> threads;
    flag begun;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const auto lock = make(a);
        for (;;) {
          const auto held = lock->acquire({.wait = patience});
          begun.raise();
          if (held) continue;
          EXPECT_THAT(held, fails_with(errc::cancelled));
          return;
        }
      });
    }
    ASSERT_TRUE(begun.wait());
    EXPECT_TRUE(a.close().empty());
    threads.clear();
    EXPECT_TRUE(becomes_free(watcher, "stock/42"));
  }
}

TEST(moved_from, a_client_is_still_one) {
  // Broken: a use of it is the end of the program.
  client a = client::open("memory:").value();
  client b = std::move(a);
  EXPECT_THAT(a.inspect("stock"), succeeds());  // NOLINT(bugprone-use-after-move): it is defined
  EXPECT_TRUE(b.close().empty());
  EXPECT_THAT(a.inspect("stock"), fails_with(errc::cancelled));
}

}  // namespace
}  // namespace holdfast::test
