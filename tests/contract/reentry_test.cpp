// The recursive mutex, and what a thread that holds may not do.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"
#include "support/recording_observer.hpp"

#include <mutex>
#include <thread>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(reentry);

// Whether another thread can acquire it.
bool free_for_another(recursive_mutex& lock) {
  return in_thread([&] {
           if (!lock.try_lock()) return false;
           lock.unlock();
           return true;
         })
      .get();
}

TEST_P(reentry, the_thread_that_holds_enters_again_and_leaves_as_often) {
  // Broken: a recursive function waits for itself, or its inner return frees the lock.
  const client a = open();
  recursive_mutex lock(a, "stock");
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.try_lock_for(1s));
  EXPECT_FALSE(free_for_another(lock));
  lock.unlock();
  lock.unlock();
  EXPECT_FALSE(free_for_another(lock));
  EXPECT_TRUE(lock.valid());
  lock.unlock();
  EXPECT_FALSE(lock.valid());
  EXPECT_TRUE(free_for_another(lock));
}

TEST_P(reentry, entries_count_through_every_object_of_the_name) {
  // Broken: two components with separate lock objects deadlock in one thread.
  const client a = open();
  recursive_mutex outer(a, "stock");
  recursive_mutex inner(a, "stock");
  outer.lock();
  inner.lock();
  EXPECT_EQ(inner.fence(), outer.fence());
  outer.unlock();
  EXPECT_FALSE(free_for_another(outer));
  inner.unlock();
  EXPECT_TRUE(free_for_another(inner));
}

TEST_P(reentry, entries_outlive_the_object_that_they_were_made_through) {
  // Broken: the lock is released where the last object of the name ends, and the thread that leaves
  // later ends the program.
  const client a = open();
  const client b = open();
  for (const bool fair : {false, true}) {
    if (fair && !a.caps().fair) continue;
    const lock_options options{.fair = fair};
    {
      recursive_mutex outer(a, "stock", options);
      outer.lock();
    }
    EXPECT_FALSE(recursive_mutex(b, "stock", options).try_lock());
    recursive_mutex inner(a, "stock", options);
    EXPECT_TRUE(inner.valid());
    inner.unlock();
    EXPECT_TRUE(free_for_another(inner));
  }
}

TEST_P(reentry, the_fence_is_that_of_the_first_entry) {
  // Broken: a nested call's write makes the outer one's look stale.
  const client a = open();
  recursive_mutex lock(a, "stock");
  lock.lock();
  const fence_token first = lock.fence();
  lock.lock();
  EXPECT_EQ(lock.fence(), first);
  lock.unlock();
  EXPECT_EQ(lock.fence(), first);
  lock.unlock();
  lock.lock();
  EXPECT_GT(lock.fence(), first);
  lock.unlock();
}

TEST_P(reentry, another_client_is_another_process) {
  // Broken: re-entrance extends beyond the process.
  const client a = open();
  const client b = open();
  recursive_mutex here(a, "stock");
  recursive_mutex there(b, "stock");
  here.lock();
  EXPECT_TRUE(eventually([&] {
    try {
      return !there.try_lock();
    } catch (const lock_error& why) {
      if (why.code() != errc::unavailable) throw;  // a busy machine: not answered in time
      return false;
    }
  }));
  here.unlock();
  EXPECT_TRUE(there.try_lock_for(patience));
  there.unlock();
}

TEST_P(reentry, after_a_loss_it_cannot_be_entered_and_every_entry_is_left) {
  // Broken: inner code continues under a lock that another holder has.
  const client a = open();
  recursive_mutex lock(a, "stock", told_soon);
  lock.lock();
  lock.lock();
  const std::stop_token lost = lock.lost();
  take_away(a, "stock");
  ASSERT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(thrown_by([&] { lock.lock(); }), "lost");
  // Another thread may have it by now; that does not count as our re-entry.
  in_thread([&] {
    lock.lock();
    lock.unlock();
  }).get();
  lock.unlock();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(lock.try_lock()); }), "lost");
  lock.unlock();
  EXPECT_TRUE(lock.try_lock_for(patience));
  lock.unlock();
}

TEST_P(reentry, a_new_thread_does_not_inherit_the_entries_of_a_dead_one) {
  // Broken: glibc reuses thread ids at once, and a stranger enters a lock that was never released.
  const client a = open();
  recursive_mutex lock(a, "stock");
  std::thread([&] { lock.lock(); }).join();
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(free_for_another(lock));
}

TEST_P(reentry, there_is_a_deepest_entry) {
  // Broken: the counter overflows and the lock is freed too early.
  const client a = open();
  recursive_mutex lock(a, "stock");
  for (int i = 0; i < 65'535; ++i) lock.lock();
  EXPECT_EQ(thrown_by([&] { lock.lock(); }), "overloaded");
  for (int i = 0; i < 65'535; ++i) lock.unlock();
  EXPECT_TRUE(free_for_another(lock));
}

TEST_P(reentry, a_plain_mutex_refuses_a_thread_that_holds_it_already) {
  // Broken: a thread waits for itself forever.
  const client a = open();
  mutex one(a, "stock");
  mutex two(a, "stock");
  shared_mutex three(a, "stock");
  recursive_mutex four(a, "stock");
  one.lock();
  EXPECT_EQ(thrown_by([&] { one.lock(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { static_cast<void>(two.try_lock()); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { three.lock(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { three.lock_shared(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { four.lock(); }), "would deadlock");
  one.unlock();
  four.lock();
  EXPECT_EQ(thrown_by([&] { one.lock(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { three.lock(); }), "would deadlock");
  four.unlock();
  EXPECT_TRUE(two.try_lock());
  two.unlock();
}

TEST_P(reentry, an_acquire_never_re_enters_and_the_wait_for_oneself_is_an_event) {
  // Broken: two leases of one lock in one process; or a silent dead-lock.
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  const client a = open(options);
  mutex lock(a, "stock");
  const auto held = lock.acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(waits_in_vain(300ms, [&](duration wait) { return lock.acquire({.wait = wait}); }));
  if (!a.caps().always_fair) {
    EXPECT_TRUE(seen->sees(event_kind::self_wait));
  }
}

// Without a server: the process that dies would leave its server's folder behind.
TEST(reentry_death, unlocking_what_the_thread_does_not_hold_is_a_bug_that_shows) {
  // Broken: somebody else's lock is freed silently.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const client a = client::open("memory:").value();
        recursive_mutex lock(a, "stock");
        lock.unlock();
      },
      "recursive_mutex::unlock on a thread that does not hold it");
}

}  // namespace
}  // namespace holdfast::test
