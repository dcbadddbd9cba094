// fork() in a program that has locks, and several clients in one program.
#include "integration/sqlite_harness.hpp"
#include "support/forked_process.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace holdfast::test {
namespace {

TEST(sqlite_fork, makes_an_inert_child_and_leaves_the_parents_locks_alone) {
  // Broken: a child that ends, or that uses what it inherited, frees or breaks its parent's locks.
  const embedded_file file;
  auto client = std::make_optional<embedded_client>(file.path());
  const auto claim = client->claim();
  ASSERT_TRUE(granted(client->attempt(claim)));
  forked_process child([&] {
    const auto check = [](bool fine, const char* what) {
      if (!fine) throw std::runtime_error(what);
    };
    check(client->attempt(client->claim()).error() == errc::cancelled, "attempt");
    check(client->leave(claim).error() == errc::cancelled, "leave");
    check(client->store().life_descriptor() == -1, "life");
    check(!client->store().observe({"", "stock"}, [](const auto&) {}), "observe");
    client.reset();
  });
  EXPECT_EQ(child.wait(), 0);
  const embedded_client other(file.path());
  auto attempt = other.claim();
  attempt->queued = false;
  EXPECT_FALSE(granted(other.attempt(attempt)));
  EXPECT_EQ(client->renew(claim).state, hold_state::renewed);
  EXPECT_EQ(client->leave(claim).value(), departure::was_holder);
  EXPECT_TRUE(granted(other.attempt(attempt)));
}

TEST(sqlite_fork, lets_the_child_open_a_client_of_its_own) {
  // Broken: a server that forks its workers cannot lock in them.
  const embedded_file file;
  const embedded_client parent(file.path());
  const auto claim = parent.claim();
  ASSERT_TRUE(granted(parent.attempt(claim)));
  forked_process child([&] {
    const embedded_client own(file.path());
    auto attempt = own.claim();
    attempt->queued = false;
    if (granted(own.attempt(attempt))) throw std::runtime_error("two holders");
    own.acquire(own.claim("other"));
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(parent.leave(claim).value(), departure::was_holder);
}

TEST(sqlite_clients, of_one_process_exclude_each_other_and_one_may_go) {
  // Broken: closing one client drops the file locks of the other, and strangers write beside it.
  const embedded_file file;
  const embedded_client stays(file.path());
  const auto claim = stays.claim();
  for (int round = 0; round < 5; ++round) {
    const embedded_client goes(file.path());
    ASSERT_TRUE(granted(goes.attempt(goes.claim("other"))));
    if (round == 0) {
      ASSERT_TRUE(granted(stays.attempt(claim)));
    }
    auto attempt = goes.claim();
    attempt->queued = false;
    EXPECT_FALSE(granted(goes.attempt(attempt)));
  }
  EXPECT_EQ(stays.renew(claim).state, hold_state::renewed);
  for (int i = 0; i < 100; ++i) {
    const auto own = stays.claim("own");
    ASSERT_TRUE(granted(stays.attempt(own)));
    ASSERT_EQ(stays.leave(own).value(), departure::was_holder);
  }
}

TEST(sqlite_clients, of_many_threads_share_one_connection) {
  // Broken: threads of one client corrupt each other's transactions.
  const embedded_file file;
  const embedded_client client(file.path());
  std::vector<std::jthread> threads;
  std::atomic<int> inside{0};
  std::atomic<int> collisions{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const auto claim = i % 2 == 0 ? client.fair_claim() : client.claim();
        client.acquire(claim);
        if (++inside != 1) ++collisions;
        --inside;
        client.leave(claim);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(collisions, 0);
  EXPECT_TRUE(client.list().empty());
}

}  // namespace
}  // namespace holdfast::test
