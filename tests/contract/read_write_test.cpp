// Many readers or one writer; from one to the other and back.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(read_write);

// If the store has no shared locks, it must say so; the test then ends.
bool shares(const client& from) {
  if (from.caps().shared) return true;
  EXPECT_THAT(shared_mutex(from, "price").acquire_shared(), fails_with(errc::unsupported));
  return false;
}

bool changes(const client& from) {
  if (!shares(from)) return false;
  if (from.caps().supports_mode_change) return true;
  shared_mutex price(from, "price");
  auto reading = price.acquire_shared();
  EXPECT_THAT(price.try_upgrade(*reading), fails_with(errc::unsupported));
  EXPECT_THAT(price.downgrade(*reading), fails_with(errc::unsupported));
  return false;
}

TEST_P(read_write, readers_share_and_keep_a_writer_out) {
  // Broken: a price is changed while it is being read.
  const client a = open();
  const client b = open();
  if (!shares(a)) return;
  shared_mutex from_a(a, "price");
  shared_mutex from_b(b, "price");
  auto one = from_a.acquire_shared();
  auto two = from_b.acquire_shared({.wait = 0s});
  auto three = from_b.acquire_shared({.wait = 0s});
  EXPECT_THAT(one, succeeds());
  EXPECT_THAT(two, succeeds());
  EXPECT_THAT(three, succeeds());
  EXPECT_THAT(from_b.acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(one->release(), succeeds());
  EXPECT_THAT(two->release(), succeeds());
  EXPECT_THAT(from_a.acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(three->release(), succeeds());
  EXPECT_THAT(from_a.acquire({.wait = 0s}), succeeds());
}

TEST_P(read_write, a_writer_keeps_readers_out) {
  // Broken: somebody reads half of a change.
  const client a = open();
  const client b = open();
  if (!shares(a)) return;
  auto writing = shared_mutex(a, "price").acquire();
  ASSERT_THAT(writing, succeeds());
  EXPECT_THAT(shared_mutex(b, "price").acquire_shared({.wait = 0s}), fails_with(errc::busy));
  EXPECT_TRUE(waits_in_vain(300ms, [&](duration wait) {
    return shared_mutex(a, "price").acquire_shared({.wait = wait});
  }));
  // A mutex of the same name is a writer, except that Redisson's two kinds of locks do not exclude each other.
  const bool apart = a.caps().engine == "redis, dialect=redisson";
  EXPECT_THAT(mutex(b, "price").acquire({.wait = 0s}),
              fails_with(apart ? errc::name_conflict : errc::busy));
  EXPECT_THAT(writing->release(), succeeds());
  EXPECT_THAT(shared_mutex(b, "price").acquire_shared({.wait = 0s}), succeeds());
}

TEST_P(read_write, a_reader_that_comes_while_a_writer_waits_goes_behind_it) {
  // Broken: readers that arrive one after another keep a writer out forever.
  const client a = open();
  const client b = open();
  const client c = open();
  if (!shares(a) || !keeps_line(a)) return;
  auto reading = shared_mutex(a, "price").acquire_shared();
  ASSERT_THAT(reading, succeeds());
  shared_mutex from_b(b, "price");
  shared_mutex from_c(c, "price");
  auto writes = in_thread([&] { return from_b.acquire({.wait = patience}); });
  ASSERT_TRUE(has_waiters(a, "price", 1));
  EXPECT_TRUE(becomes_busy([&] { return from_c.acquire_shared({.wait = 0s}); }));
  auto reads = in_thread([&] { return from_c.acquire_shared({.wait = patience}); });
  ASSERT_TRUE(has_waiters(a, "price", 2));
  ASSERT_THAT(reading->release(), succeeds());
  auto writing = writes.get();
  ASSERT_THAT(writing, succeeds());
  EXPECT_FALSE(arrives(reads, 20ms));
  ASSERT_THAT(writing->release(), succeeds());
  EXPECT_THAT(reads.get(), succeeds());
}

TEST_P(read_write, a_writers_release_lets_in_all_readers_up_to_the_next_writer) {
  // Broken: readers trickle in one by one although they could share.
  const client a = open();
  const client b = open();
  if (!shares(a) || !keeps_line(a)) return;
  auto writing = shared_mutex(a, "price").acquire();
  ASSERT_THAT(writing, succeeds());
  shared_mutex from_b(b, "price");
  reply<lease> readers[3];
  reply<lease> writer;
  reply<lease> late;
  for (auto& each : readers) from_b.async_acquire_shared({}, {}, each.callback());
  ASSERT_TRUE(has_waiters(a, "price", 3));
  from_b.async_acquire({}, {}, writer.callback());
  ASSERT_TRUE(has_waiters(a, "price", 4));
  from_b.async_acquire_shared({}, {}, late.callback());
  ASSERT_TRUE(has_waiters(a, "price", 5));
  ASSERT_THAT(writing->release(), succeeds());
  std::vector<lease> reading;
  for (auto& each : readers) {
    auto got = each.future.get();
    ASSERT_THAT(got, succeeds());
    reading.push_back(*std::move(got));
  }
  EXPECT_FALSE(arrives(writer.future, 20ms));
  reading.clear();
  auto second = writer.future.get();
  ASSERT_THAT(second, succeeds());
  EXPECT_FALSE(arrives(late.future, 20ms));
  EXPECT_THAT(second->release(), succeeds());
  EXPECT_THAT(late.future.get(), succeeds());
}

TEST_P(read_write, nobody_starves) {
  // Broken: under a steady stream of one kind the other never gets in.
  const client a = open();
  const client b = open();
  if (!shares(a) || !keeps_line(a)) return;
  std::atomic<bool> done{false};
  std::atomic<int> readers{0};
  std::atomic<int> writers{0};
  std::atomic<int> violations{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 6; ++i) {
    workers.emplace_back([&, i] {
      shared_mutex price(i % 2 == 0 ? a : b, "price");
      while (!done) {
        if (i < 3) {
          const auto reading = price.acquire_shared({.wait = 4 * patience});
          ASSERT_THAT(reading, succeeds());
          readers.fetch_add(1);
          if (writers.load() != 0) violations.fetch_add(1);
          readers.fetch_sub(1);
        } else {
          const auto writing = price.acquire({.wait = 4 * patience});
          ASSERT_THAT(writing, succeeds());
          if (writers.fetch_add(1) != 0 || readers.load() != 0) violations.fetch_add(1);
          writers.fetch_sub(1);
        }
      }
    });
  }
  // Among them, one of each kind gets in repeatedly.
  shared_mutex price(a, "price");
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(price.acquire({.wait = 4 * patience}), succeeds());
    EXPECT_THAT(price.acquire_shared({.wait = 4 * patience}), succeeds());
  }
  done = true;
  workers.clear();
  EXPECT_EQ(violations.load(), 0);
}

TEST_P(read_write, the_sole_reader_may_become_the_writer) {
  // Broken: between reading and writing somebody else changed it.
  const client a = open();
  const client b = open();
  if (!changes(a)) return;
  shared_mutex price(a, "price");
  auto held = price.acquire_shared();
  ASSERT_THAT(held, succeeds());
  const fence_token before = held->fence();
  ASSERT_THAT(price.try_upgrade(*held), succeeds());
  EXPECT_TRUE(held->valid());
  EXPECT_GT(held->fence(), before);
  EXPECT_THAT(shared_mutex(b, "price").acquire_shared({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(shared_mutex(b, "price").acquire({.wait = 0s}), succeeds());
}

TEST_P(read_write, two_readers_that_both_want_to_write_do_not_wait_for_each_other) {
  // Broken: the classic dead-lock of upgrades.
  const client a = open();
  const client b = open();
  if (!changes(a)) return;
  shared_mutex from_a(a, "price");
  shared_mutex from_b(b, "price");
  auto one = from_a.acquire_shared();
  auto two = from_b.acquire_shared();
  ASSERT_THAT(one, succeeds());
  ASSERT_THAT(two, succeeds());
  EXPECT_THAT(from_a.try_upgrade(*one), fails_with(errc::would_deadlock));
  EXPECT_THAT(from_b.try_upgrade(*two), fails_with(errc::would_deadlock));
  EXPECT_TRUE(one->valid());
  EXPECT_TRUE(two->valid());
  EXPECT_THAT(two->release(), succeeds());
  EXPECT_THAT(from_a.try_upgrade(*one), succeeds());
}

TEST_P(read_write, a_downgrade_lets_readers_in_and_no_writer) {
  // Broken: what was written is changed before its writer could read it back.
  const client a = open();
  const client b = open();
  if (!changes(a)) return;
  shared_mutex price(a, "price");
  auto held = price.acquire();
  ASSERT_THAT(held, succeeds());
  const fence_token before = held->fence();
  shared_mutex from_b(b, "price");
  auto reads = in_thread([&] { return from_b.acquire_shared({.wait = patience}); });
  ASSERT_TRUE(has_waiters(a, "price", 1));
  ASSERT_THAT(price.downgrade(*held), succeeds());
  EXPECT_GT(held->fence(), before);
  EXPECT_THAT(reads.get(), succeeds());
  EXPECT_THAT(from_b.acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_TRUE(held->valid());
}

TEST_P(read_write, a_writer_of_the_same_client_waits_for_all_readers_after_a_downgrade) {
  // Broken: a claim that has become a reader is handed over inside the process as a writer.
  const client a = open();
  const client b = open();
  if (!changes(a)) return;
  shared_mutex price(a, "price");
  auto held = price.acquire();
  ASSERT_THAT(held, succeeds());
  auto writes = in_thread([&] { return price.acquire({.wait = patience}); });
  EXPECT_FALSE(arrives(writes, 10ms));
  ASSERT_THAT(price.downgrade(*held), succeeds());
  ASSERT_TRUE(has_waiters(a, "price", 1));
  // The local writer is in the engine's queue by now, so later readers go behind it.
  EXPECT_TRUE(becomes_busy([&] { return shared_mutex(b, "price").acquire_shared({.wait = 0s}); }));
  EXPECT_FALSE(arrives(writes, 10ms));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(writes.get(), succeeds());
}

TEST_P(read_write, only_a_live_lease_of_this_lock_can_change) {
  // Broken: an upgrade of a lost hold, or of another lock, is taken as valid.
  client a = open();
  if (!changes(a)) return;
  shared_mutex price(a, "price");
  shared_mutex other(a, "other");
  lease none;
  EXPECT_THAT(price.try_upgrade(none), fails_with(errc::not_held));
  EXPECT_THAT(price.downgrade(none), fails_with(errc::not_held));
  auto foreign = other.acquire_shared();
  ASSERT_THAT(foreign, succeeds());
  EXPECT_THAT(price.try_upgrade(*foreign), fails_with(errc::not_held));
  auto held = price.acquire_shared();
  ASSERT_THAT(held, succeeds());
  ASSERT_THAT(a.revoke("price", revocation::force), succeeds());
  EXPECT_THAT(price.try_upgrade(*held), fails_with(errc::lost));
}

TEST_P(read_write, fences_grow_with_readers_too) {
  // Broken: a stale reader's derived write passes for a newer one.
  const client a = open();
  if (!shares(a)) return;
  shared_mutex price(a, "price");
  auto one = price.acquire_shared();
  ASSERT_THAT(one, succeeds());
  const fence_token first = one->fence();
  EXPECT_THAT(one->release(), succeeds());
  auto two = price.acquire_shared();
  ASSERT_THAT(two, succeeds());
  EXPECT_GT(two->fence(), first);
  const fence_token second = two->fence();
  EXPECT_THAT(two->release(), succeeds());
  const auto writing = price.acquire();
  ASSERT_THAT(writing, succeeds());
  EXPECT_GT(writing->fence(), second);
}

}  // namespace
}  // namespace holdfast::test
