// The std interface: what the standard's own tools do with our locks.
#include "contract/contract.hpp"
#include "contract/lockable.hpp"
#include "support/also_longer.hpp"
#include "support/recording_observer.hpp"

#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace holdfast::test {

static_assert(timed_lockable<mutex>);
static_assert(timed_lockable<recursive_mutex>);
static_assert(shared_timed_lockable<shared_mutex>);
static_assert(lockable<multi_lock>);
static_assert(noexcept(std::declval<mutex&>().unlock()));
static_assert(noexcept(std::declval<recursive_mutex&>().unlock()));
static_assert(noexcept(std::declval<shared_mutex&>().unlock()));
static_assert(noexcept(std::declval<shared_mutex&>().unlock_shared()));
static_assert(noexcept(std::declval<multi_lock&>().unlock()));
static_assert(std::is_nothrow_destructible_v<mutex> && std::is_nothrow_destructible_v<lease>);
static_assert(std::is_nothrow_move_constructible_v<lease>);

namespace {

HOLDFAST_ON_EVERY_STORE(std_face);

TEST_P(std_face, scoped_lock_holds_for_its_scope) {
  // Broken: the first example of the README.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  mutex other(b, "stock");
  {
    const std::scoped_lock guard(stock);
    EXPECT_TRUE(stock.lease().valid());
    EXPECT_GT(stock.lease().fence().value(), 0U);
    EXPECT_FALSE(other.try_lock());
  }
  EXPECT_FALSE(stock.lease().valid());
  EXPECT_TRUE(other.try_lock_for(patience));
  other.unlock();
}

TEST_P(std_face, unique_lock_defers_tries_and_waits) {
  // Broken: TimedLockable in name only.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  mutex other(b, "stock");
  std::unique_lock mine(stock, std::defer_lock);
  EXPECT_TRUE(mine.try_lock());
  std::unique_lock theirs(other, std::try_to_lock);
  EXPECT_FALSE(theirs.owns_lock());
  EXPECT_TRUE(also_longer(50ms, [&](duration wait) {
    try {
      const time_point before = clock::now();
      EXPECT_FALSE(theirs.try_lock_for(wait));
      EXPECT_FALSE(theirs.try_lock_until(std::chrono::steady_clock::now() + wait));
      EXPECT_FALSE(theirs.try_lock_until(std::chrono::system_clock::now() - 1s));
      EXPECT_GE(clock::now() - before, 2 * wait);
      return testing::AssertionSuccess();
    } catch (const lock_error& unknown) {
      return testing::AssertionFailure() << unknown.what();
    }
  }));
  mine.unlock();
  EXPECT_TRUE(theirs.try_lock_for(patience));
}

TEST_P(std_face, std_lock_takes_several_in_any_order) {
  // Broken: std::lock needs try_lock to answer false, and nothing else, when it is not free.
  const client a = open();
  const client b = open();
  int balance = 0;  // guarded by both
  const auto transfer = [&](const client& through, bool turned) {
    mutex from(through, turned ? "two" : "one");
    mutex to(through, turned ? "one" : "two");
    for (int i = 0; i < 20; ++i) {
      const std::scoped_lock both(from, to);
      ++balance;
    }
  };
  {
    std::jthread one([&] { transfer(a, false); });
    std::jthread two([&] { transfer(b, true); });
    std::jthread three([&] { transfer(b, false); });
  }
  EXPECT_EQ(balance, 60);
}

TEST_P(std_face, shared_lock_reads_and_may_be_moved_to_another_thread) {
  // Broken: unlock_shared on another thread frees nothing, or permanently ends somebody else's
  // shared hold.
  const client a = open();
  const client b = open();
  shared_mutex price(a, "price");
  shared_mutex other(b, "price");
  if (!a.caps().shared) {
    EXPECT_EQ(thrown_by([&] { price.lock_shared(); }), "unsupported");
    return;
  }
  std::shared_lock reading(price);
  std::thread([moved = std::move(reading), &other] {
    EXPECT_TRUE(moved.owns_lock());
    EXPECT_FALSE(other.try_lock());
    EXPECT_TRUE(other.try_lock_shared());
    other.unlock_shared();
  }).join();
  EXPECT_TRUE(other.try_lock_for(patience));
  other.unlock();
  // This thread's hold moved with the lock: it may lock again.
  EXPECT_TRUE(price.try_lock_for(patience));
  price.unlock();
}

TEST_P(std_face, a_shared_mutex_is_not_re_entrant_in_any_combination) {
  // Broken: a reader that reads again behind a waiting writer waits forever.
  const client a = open();
  shared_mutex price(a, "price");
  shared_mutex again(a, "price");
  price.lock();
  EXPECT_EQ(thrown_by([&] { again.lock(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { again.lock_shared(); }), "would deadlock");
  price.unlock();
  if (!a.caps().shared) return;
  price.lock_shared();
  EXPECT_EQ(thrown_by([&] { price.lock_shared(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { again.lock(); }), "would deadlock");
  EXPECT_EQ(thrown_by([&] { static_cast<void>(again.try_lock_shared()); }), "would deadlock");
  price.unlock_shared();
  EXPECT_TRUE(again.try_lock_for(patience));
  again.unlock();
}

TEST_P(std_face, an_exception_in_the_critical_section_unlocks) {
  // Broken: a failed order keeps the shop closed until the ttl ends.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  try {
    const std::scoped_lock guard(stock);
    throw std::runtime_error("out of paper");
  } catch (const std::runtime_error&) {
  }
  mutex other(b, "stock");
  EXPECT_TRUE(other.try_lock_for(patience));
  other.unlock();
}

TEST_P(std_face, a_lock_whose_thread_has_ended_can_be_unlocked_by_another) {
  // Broken: a lock that nobody may unlock is renewed forever.
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  const client a = open(options);
  const client b = open();
  mutex stock(a, "stock");
  std::thread([&] { stock.lock(); }).join();
  mutex other(b, "stock");
  EXPECT_FALSE(other.try_lock());
  stock.unlock();
  EXPECT_TRUE(seen->sees(event_kind::foreign_unlock));
  EXPECT_TRUE(other.try_lock_for(patience));
  other.unlock();
  EXPECT_TRUE(stock.try_lock_for(patience));
  stock.unlock();
}

TEST_P(std_face, a_thread_that_lost_its_lock_unlocks_nothing_of_the_next_one) {
  // Broken: it releases the lock of the thread that was let in after it, which never learns of it.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock", told_soon);
  shared_mutex price(a, "price", told_soon);
  std::promise<void> lost;
  std::promise<void> next_holds;
  auto former = in_thread([&] {
    const std::scoped_lock both(stock, price);
    take_away(b, "stock");
    take_away(b, "price");
    EXPECT_TRUE(eventually([&] { return !stock.lease().valid() && !price.lease().valid(); }));
    lost.set_value();
    next_holds.get_future().wait();
    EXPECT_FALSE(stock.lease().valid());
    EXPECT_FALSE(price.lease().valid());
  });
  lost.get_future().wait();
  {
    const std::scoped_lock both(stock, price);
    next_holds.set_value();
    former.get();
    EXPECT_TRUE(stock.lease().valid());
    EXPECT_TRUE(price.lease().valid());
    EXPECT_FALSE(mutex(b, "stock").try_lock());
    EXPECT_FALSE(shared_mutex(b, "price").try_lock());
  }
  in_thread([&] { const std::scoped_lock again(stock, price); }).get();
}

TEST_P(std_face, a_lock_object_that_ends_while_locked_unlocks) {
  // Broken: the watchdog renews for an object that is gone.
  const client a = open();
  const client b = open();
  {
    mutex stock(a, "stock");
    stock.lock();
  }
  shared_mutex price(b, "stock");
  EXPECT_TRUE(price.try_lock_for(patience));
  price.unlock();
  {
    shared_mutex writing(a, "stock");
    writing.lock();
  }
  if (!a.caps().shared) return;
  {
    shared_mutex reading(a, "stock");
    std::thread([&] { reading.lock_shared(); }).join();
    reading.lock_shared();
    EXPECT_FALSE(price.try_lock());
  }
  EXPECT_TRUE(price.try_lock_for(patience));
  price.unlock();
}

TEST_P(std_face, unlocking_what_is_not_locked_does_nothing) {
  // Broken: a second unlock takes the lock from the object that holds it, or makes its thread forget
  // that it holds.
  const client a = open();
  mutex stock(a, "stock");
  stock.unlock();
  stock.lock();
  stock.unlock();
  mutex again(a, "stock");
  again.lock();
  stock.unlock();
  multi_lock(std::vector<lock_part>{&stock}).unlock();
  shared_mutex(a, "stock").unlock();
  shared_mutex(a, "stock").unlock_shared();
  EXPECT_TRUE(again.lease().valid());
  EXPECT_EQ(thrown_by([&] { again.lock(); }), "would deadlock");
  again.unlock();
}

TEST_P(std_face, a_limit_beyond_the_range_of_nanoseconds_is_no_limit) {
  // Broken: a wait of a thousand years overflows, and does not wait at all.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  mutex other(b, "stock");
  stock.lock();
  auto waits = in_thread([&] {
    const bool locked = other.try_lock_for(std::chrono::hours::max());
    if (locked) other.unlock();
    return locked;
  });
  EXPECT_TRUE(has_waiters(a, "stock", 1));
  stock.unlock();
  EXPECT_TRUE(waits.get());
}

TEST_P(std_face, what_is_no_contention_is_thrown_not_answered_with_false) {
  // Broken: without an engine, a program concludes that the lock is busy.
  client a = open();
  mutex stock(a, "stock");
  shared_mutex price(a, "price");
  recursive_mutex tree(a, "tree");
  a.close();
  EXPECT_EQ(thrown_by([&] { static_cast<void>(stock.try_lock()); }), "cancelled");
  EXPECT_EQ(thrown_by([&] { static_cast<void>(price.try_lock_shared_for(1s)); }), "cancelled");
  EXPECT_EQ(thrown_by([&] { tree.lock(); }), "cancelled");
  multi_lock both({&stock});
  EXPECT_EQ(thrown_by([&] { static_cast<void>(both.try_lock()); }), "cancelled");
}

}  // namespace
}  // namespace holdfast::test
