// Things that end while something waits for them or depends on them.
#include "contract/flavours.hpp"
#include "support/task.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(destruction);

task waits_for(exclusive_lock& lock, bool& resumed) {
  const auto held = co_await lock.async_acquire();
  resumed = true;
}

TEST_P(destruction, a_coroutine_destroyed_while_it_waits_leaves_no_claim) {
  // Broken: a dead coroutine is granted the lock, or resumed.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  const auto lock = make(b);
  bool resumed = false;
  for (int i = 0; i < 10; ++i) {
    task waiting = waits_for(*lock, resumed);
    ASSERT_TRUE(has_waiters(a, "stock/42", 1));
    waiting.destroy();
    ASSERT_TRUE(has_waiters(a, "stock/42", 0));
  }
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_TRUE(becomes_free(a, "stock/42"));
  EXPECT_FALSE(resumed);
}

TEST_P(destruction, a_coroutine_destroyed_behind_a_thread_of_its_client_leaves_the_local_queue) {
  // Broken: the local queue stops at a waiter that no longer exists.
  if (!supported()) return;
  const client a = open();
  const auto lock = make(a);
  auto held = lock->acquire();
  ASSERT_THAT(held, succeeds());
  bool resumed = false;
  {
    const task one = waits_for(*lock, resumed);
    const task two = waits_for(*lock, resumed);
  }
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(lock->acquire({.wait = patience}), succeeds());
  EXPECT_FALSE(resumed);
}

TEST_P(destruction, an_awaitable_that_is_never_awaited_does_nothing) {
  // Broken: making it takes the lock.
  if (!supported()) return;
  const client a = open();
  const auto lock = make(a);
  { const auto ignored = lock->async_acquire(); }
  EXPECT_TRUE(becomes_free(a, "stock/42"));
  EXPECT_THAT(lock->acquire({.wait = 0s}), succeeds());
}

TEST_P(destruction, a_lock_object_may_end_while_its_acquisition_waits) {
  // Broken: the answer comes into freed memory.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> answer;
  make(b)->async_acquire({}, {}, answer.callback());
  ASSERT_TRUE(has_waiters(a, "stock/42", 1));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(answer.future.get(), succeeds());
}

TEST_P(destruction, a_lease_outlives_its_lock_object_and_every_handle) {
  // Broken: returning a lease from a function is not safe.
  if (!supported()) return;
  const client b = open();
  const client keeps_open = open();
  const auto take = [&] {
    const client handle = keeps_open;
    return make(handle)->acquire().value();
  };
  lease held = take();
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.name(), "stock/42");
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(held.release(), succeeds());
}

TEST_P(destruction, a_grant_that_nobody_takes_is_given_back) {
  // Broken: a callback that drops its answer keeps the lock.
  if (!supported()) return;
  const client a = open();
  flag called;
  make(a)->async_acquire({}, {}, [&](result<lease>) { called.raise(); });
  ASSERT_TRUE(called.wait());
  EXPECT_THAT(make(a)->acquire({.wait = patience}), succeeds());
}

TEST_P(destruction, lost_callbacks_may_outlive_the_lease) {
  // Broken: a listener that is registered when the lease ends.
  if (!supported()) return;
  const client a = open();
  std::stop_token lost;
  std::stop_token wanted;
  {
    const auto held = make(a)->acquire();
    ASSERT_THAT(held, succeeds());
    lost = held->lost();
    wanted = held->wanted();
  }
  EXPECT_FALSE(lost.stop_requested());
  const std::stop_callback late(lost, [] {});
  const std::stop_callback later(wanted, [] {});
  EXPECT_THAT(make(a)->acquire({.wait = patience}), succeeds());
}

}  // namespace
}  // namespace holdfast::test
