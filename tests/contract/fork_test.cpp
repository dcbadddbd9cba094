// A forked child has the parent's memory, but none of its threads and none of its locks.
#include "contract/contract.hpp"
#include "support/task.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(forking);

// What the child finds wrong, by number; 0: nothing. Runs in the child, and ends it.
template <class Work>
int in_child(Work&& work, pid_t (*make)() = ::fork) {
  const pid_t child = make();
  if (child == 0) ::_exit(work());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_P(forking, every_call_of_the_child_is_cancelled) {
  // Broken: a child talks on the parent's connection, or hangs.
  client a = open();
  mutex stock(a, "stock");
  shared_mutex price(a, "price");
  recursive_mutex tree(a, "tree");
  semaphore api(a, "api", {.max = 2});
  latch start(a, "start");
  election scheduler(a, "scheduler", "host");
  const int wrong = in_child([&] {
    const auto is_cancelled = [](const auto& answer) {
      return !answer && answer.error() == errc::cancelled;
    };
    if (!is_cancelled(stock.acquire())) return 1;
    if (thrown_by([&] { stock.lock(); }) != "cancelled") return 2;
    if (thrown_by([&] { static_cast<void>(price.try_lock()); }) != "cancelled") return 3;
    if (thrown_by([&] { tree.lock(); }) != "cancelled") return 4;
    // What the store lacks is unsupported, in the child as in the parent.
    if (a.caps().permits && !is_cancelled(api.acquire())) return 5;
    if (a.caps().permits && !is_cancelled(api.available())) return 6;
    if (a.caps().latches && !is_cancelled(start.set(1))) return 7;
    if (a.caps().latches && !is_cancelled(start.wait())) return 8;
    if (a.caps().reports_holders && !is_cancelled(scheduler.campaign())) return 9;
    if (a.caps().reports_holders && !is_cancelled(scheduler.leader())) return 10;
    if (a.caps().reports_holders &&
        !is_cancelled(scheduler.observe([](const std::optional<leader_info>&) {}))) {
      return 11;
    }
    if (!is_cancelled(a.inspect("stock"))) return 12;
    if (!is_cancelled(a.list())) return 13;
    if (!a.close().empty()) return 14;
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

TEST_P(forking, the_parents_leases_are_not_the_childs) {
  // Broken: a child that ends releases the parent's lock, or treats it as its own.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  mutex table(a, "table");
  recursive_mutex tree(a, "tree");
  auto held = stock.acquire();
  ASSERT_THAT(held, succeeds());
  table.lock();
  tree.lock();
  const int wrong = in_child([&] {
    if (held->valid()) return 1;
    if (!held->lost().stop_requested()) return 2;
    if (thrown_by([&] { tree.lock(); }) != "cancelled") return 3;
    table.unlock();
    tree.unlock();
    const auto released = held->release();
    if (released || !(released.error() == errc::cancelled)) return 4;
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(held->valid());
  EXPECT_FALSE(held->lost().stop_requested());
  EXPECT_TRUE(table.lease().valid());
  EXPECT_TRUE(tree.valid());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(mutex(b, "table").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(mutex(b, "tree").acquire({.wait = 0s}), fails_with(errc::busy));
  table.unlock();
  tree.unlock();
  EXPECT_THAT(held->release(), succeeds());
}

TEST_P(forking, a_child_made_without_fork_handlers_releases_nothing) {
  // Broken: a child of _Fork() releases the parent's lock, or treats it as its own.
  const client a = open();
  const client b = open();
  mutex stock(a, "stock");
  auto held = stock.acquire();
  ASSERT_THAT(held, succeeds());
  const int wrong = in_child(
      [&] {
        if (held->valid()) return 1;
        const auto released = held->release();
        if (released || !(released.error() == errc::cancelled)) return 2;
        const auto other = mutex(a, "price").acquire({.wait = 0s});
        if (other || !(other.error() == errc::cancelled)) return 3;
        return 0;
      },
      ::_Fork);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(held->release(), succeeds());
}

TEST_P(forking, a_child_may_destroy_everything) {
  // Broken: a destructor in the child joins a thread that does not exist, or sends on the parent's
  // behalf.
  auto a = std::make_unique<client>(open());
  const client b = open();
  auto stock = std::make_unique<mutex>(*a, "stock");
  auto price = std::make_unique<shared_mutex>(*a, "price");
  auto held = std::make_unique<result<lease>>(stock->acquire());
  ASSERT_THAT(*held, succeeds());
  if (a->caps().shared) price->lock_shared();
  const int wrong = in_child([&] {
    held.reset();
    price.reset();
    stock.reset();
    a.reset();
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE((*held)->valid());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(forking, the_parent_waits_on_undisturbed) {
  // Broken: a child's end removes the parent's place in the queue.
  const client a = open();
  const client b = open();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  EXPECT_EQ(in_child([] { return 0; }), 0);
  EXPECT_EQ(waiters(a, "stock"), keeps_line(a) ? 1U : 0U);
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.future.get(), succeeds());
}

// ThreadSanitizer ends a child that starts a thread if its parent had threads at the fork.
#ifndef __SANITIZE_THREAD__
TEST_P(forking, a_child_may_open_a_client_of_its_own) {
  // Broken: a pre-forking server has no locks in its children.
  const client a = open();
  if (!a.caps().excludes_processes) return;
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  // Answered when everything is connected: a fork during another thread's connect may copy a
  // driver's lock in the held state.
  ASSERT_THAT(a.probe(), succeeds());
  const int wrong = in_child([&] {
    auto own = client::open(url());
    if (!own) return 1;
    mutex stock(*own, "stock");
    if (stock.acquire({.wait = 0s}).error().code != errc::busy) return 2;
    mutex free(*own, "free");
    auto mine = free.acquire({.wait = patience});
    if (!mine) return 3;
    if (!mine->release()) return 4;
    own->close();
    return 0;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(held->valid());
}
#endif

}  // namespace
}  // namespace holdfast::test
