// Several locks as one, of any mix of clients and engines.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"
#include "support/rounds.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(multi_locks);

TEST_P(multi_locks, it_is_all_or_nothing) {
  // Broken: half of a transfer is locked.
  const client a = open();
  const client b = open();
  mutex one(a, "one");
  mutex two(a, "two");
  mutex three(a, "three");
  multi_lock all({&three, &one, &two});
  mutex theirs(b, "two");
  {
    const auto held = all.acquire();
    ASSERT_THAT(held, succeeds());
    EXPECT_TRUE(held->valid());
    ASSERT_EQ(held->leases().size(), 3U);
    EXPECT_EQ(held->leases()[0].name(), "three");
    EXPECT_EQ(held->leases()[1].name(), "one");
    EXPECT_EQ(held->leases()[2].name(), "two");
    EXPECT_FALSE(theirs.try_lock());
  }
  ASSERT_TRUE(theirs.try_lock_for(patience));
  EXPECT_THAT(all.acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_TRUE(becomes_free(a, "one"));
  EXPECT_TRUE(becomes_free(a, "three"));
  theirs.unlock();
}

TEST_P(multi_locks, there_is_one_deadline_for_all) {
  // Broken: n locks wait n times as long as was said.
  const client a = open();
  const client b = open();
  mutex one(a, "one");
  mutex two(a, "two");
  multi_lock both({&one, &two});
  const auto held = mutex(b, "two").acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(waits_in_vain(500ms, [&](duration wait) { return both.acquire({.wait = wait}); }));
  EXPECT_TRUE(becomes_free(a, "one"));
}

TEST_P(multi_locks, it_waits_with_nothing_in_its_hands) {
  // Broken: one slow name locks up all the others.
  const client a = open();
  const client b = open();
  mutex one(a, "one");
  mutex two(a, "two");
  multi_lock both({&one, &two});
  auto held = mutex(b, "two").acquire();
  ASSERT_THAT(held, succeeds());
  auto waits = in_thread([&] { return both.acquire({.wait = patience}); });
  ASSERT_TRUE(has_waiters(b, "two", 1));
  EXPECT_THAT(mutex(b, "one").acquire({.wait = patience}), succeeds());
  ASSERT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(multi_locks, opposite_orders_do_not_block_each_other) {
  // Broken: the textbook dead-lock.
  const client a = open();
  const client b = open();
  const int turns = rounds(10, 25);
  int transfers = 0;  // guarded by both names
  std::atomic<int> inside{0};
  const auto work = [&](const client& through, bool turned) {
    mutex one(through, "one");
    mutex two(through, "two");
    mutex mine(through, turned ? "three" : "four");
    multi_lock all(turned ? std::vector<lock_part>{&two, &mine, &one}
                          : std::vector<lock_part>{&one, &two, &mine});
    for (int i = 0; i < turns; ++i) {
      const auto held = all.acquire({.wait = 4 * patience});
      ASSERT_THAT(held, succeeds());
      EXPECT_EQ(inside.fetch_add(1), 0);
      ++transfers;
      inside.fetch_sub(1);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { work(i < 2 ? a : b, i % 2 == 0); });
    }
  }
  EXPECT_EQ(transfers, 4 * turns);
}

TEST_P(multi_locks, locks_of_different_engines_make_one) {
  // Broken: a lock in the database and one in memory cannot be held together.
  const client a = open();
  const client elsewhere = client::open("memory:").value();
  mutex here(a, "account");
  mutex there(elsewhere, "account");
  multi_lock both({&here, &there});
  {
    const auto held = both.acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    EXPECT_THAT(mutex(a, "account").acquire({.wait = 0s}), fails_with(errc::busy));
    EXPECT_THAT(mutex(elsewhere, "account").acquire({.wait = 0s}), fails_with(errc::busy));
  }
  EXPECT_TRUE(becomes_free(a, "account"));
  EXPECT_TRUE(becomes_free(elsewhere, "account"));
}

TEST_P(multi_locks, loss_of_one_is_loss_of_all) {
  // Broken: a transfer continues with only one of its two accounts locked.
  client a = open();
  mutex one(a, "one");
  mutex two(a, "two", told_soon);
  multi_lock both({&one, &two});
  auto held = both.acquire();
  ASSERT_THAT(held, succeeds());
  flag stopped;
  const std::stop_callback on_lost(held->lost(), [&] { stopped.raise(); });
  EXPECT_GT(held->valid_for(), told_soon.ttl / 3);
  take_away(a, "two");
  EXPECT_TRUE(stopped.wait());
  EXPECT_FALSE(held->valid());
  EXPECT_EQ(held->valid_for(), 0s);
  EXPECT_THAT(held->release(), fails_with(errc::lost));
  EXPECT_THAT(held->release(), fails_with(errc::not_held));
  EXPECT_TRUE(becomes_free(a, "one"));
}

TEST_P(multi_locks, it_can_be_stopped) {
  // Broken: a shutdown waits for a transfer that waits.
  const client a = open();
  const client b = open();
  mutex one(a, "one");
  mutex two(a, "two");
  multi_lock both({&one, &two});
  const auto held = mutex(b, "two").acquire();
  ASSERT_THAT(held, succeeds());
  std::stop_source stop;
  auto waits = in_thread([&] { return both.acquire({}, stop.get_token()); });
  ASSERT_TRUE(has_waiters(b, "two", 1));
  stop.request_stop();
  EXPECT_THAT(waits.get(), fails_with(errc::cancelled));
  EXPECT_TRUE(has_waiters(b, "two", 0));
  EXPECT_TRUE(becomes_free(b, "one"));
}

TEST_P(multi_locks, a_group_is_lockable_like_any_other_lock) {
  // Broken: std::scoped_lock over groups.
  const client a = open();
  const client b = open();
  mutex one(a, "one");
  mutex two(a, "two");
  multi_lock both({&one, &two});
  mutex theirs(b, "one");
  {
    const std::scoped_lock guard(both);
    EXPECT_TRUE(both.leases().valid());
    EXPECT_FALSE(theirs.try_lock());
    EXPECT_EQ(thrown_by([&] { both.lock(); }), "would deadlock");
    EXPECT_EQ(thrown_by([&] { two.lock(); }), "would deadlock");
  }
  EXPECT_FALSE(both.leases().valid());
  ASSERT_TRUE(theirs.try_lock_for(patience));
  EXPECT_FALSE(both.try_lock());
  theirs.unlock();
  one.lock();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(both.try_lock()); }), "would deadlock");
  one.unlock();
  EXPECT_TRUE(both.try_lock());
  both.unlock();
}

TEST_P(multi_locks, what_would_wait_for_itself_is_refused) {
  // Broken: a typo dead-locks.
  const client a = open();
  mutex one(a, "one");
  mutex same(a, "one");
  EXPECT_EQ(thrown_by([&] { multi_lock({&one, &same}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { multi_lock({&one, static_cast<mutex*>(nullptr)}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { multi_lock(std::vector<lock_part>{}); }), "invalid");
  multi_lease none;
  EXPECT_FALSE(none.valid());
  EXPECT_TRUE(none.lost().stop_requested());
  EXPECT_THAT(none.release(), fails_with(errc::not_held));
  EXPECT_TRUE(none.leases().empty());
}

}  // namespace
}  // namespace holdfast::test
