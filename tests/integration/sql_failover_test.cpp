// Locks when a standby takes the primary's place: a waiter is served there, a holder that has lost
// its lock is notified, and fences continue to grow even if the standby had not received the last
// ones.
#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_pair.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

// Two clients of one strategy: one holds, one waits.
struct couple {
  explicit couple(const sql_pair& pair, std::string how)
      : strategy(std::move(how)),
        first(open_client(pair.url("&connections=2&strategy=" + strategy))),
        second(open_client(pair.url("&connections=2&strategy=" + strategy))) {}

  // The hold is a row of the database: it moves with the database.
  [[nodiscard]] bool replicated() const { return strategy == "lease"; }

  void hold() {
    // A lease must live until the standby takes over, even on a slow machine, and a
    // connection-bound hold until a waiter for it is visible.
    const duration ttl = replicated() ? 24s : 15s;
    auto got = mutex(first, "stock", {.ttl = ttl}).acquire({.wait = patience});
    if (!got) throw lock_error(got.error());
    held = std::move(*got);
  }
  void wait() { mutex(second, "stock").async_acquire({.wait = 4 * patience}, {}, next.callback()); }

  const std::string strategy;
  client first;
  client second;
  lease held;
  reply<lease> next;
};

class sql_failover : public testing::TestWithParam<pair_setup> {
 protected:
  sql_failover() {
    for (const char* each : {"lease", "session", "row"}) {
      couples_.push_back(std::make_unique<couple>(*pair_, each));
    }
  }

  // Everybody's first holds, everybody's second waits, and the standby knows it.
  void hold_and_wait() {
    for (const auto& each : couples_) {
      each->hold();
      each->wait();
      ASSERT_TRUE(has_waiters(each->first, "stock", 1)) << each->strategy;
    }
    pair_->catch_up();
  }

  // A lease continues, and is released there; what a connection held is lost with it.
  static void expect_succession(couple& two) {
    if (two.replicated()) {
      const auto until = two.held.valid_until();
      EXPECT_TRUE(eventually([&] { return two.held.valid_until() > until; }));
      EXPECT_TRUE(two.held.valid());
      EXPECT_FALSE(arrives(two.next.future, 0s));
      EXPECT_THAT(two.held.release(), succeeds());
    } else {
      EXPECT_TRUE(eventually([&] { return two.held.lost().stop_requested(); }));
    }
    ASSERT_TRUE(arrives(two.next.future));
    const auto next = two.next.future.get();
    ASSERT_THAT(next, succeeds());
    EXPECT_GT(next->fence(), two.held.fence());
  }

  const std::unique_ptr<sql_pair> pair_ = GetParam().make();
  std::vector<std::unique_ptr<couple>> couples_;
};

INSTANTIATE_TEST_SUITE_P(on, sql_failover, testing::ValuesIn(pair_setups()),
                         [](const auto& each) { return each.param.name; });

TEST_P(sql_failover, a_waiter_is_served_by_the_promoted_standby) {
  // Broken: clients that stay with the dead primary, a lease that the failover costs, or a waiter that
  // hangs.
  hold_and_wait();
  pair_->kill_primary();
  pair_->promote_standby();
  for (const auto& each : couples_) {
    SCOPED_TRACE(each->strategy);
    expect_succession(*each);
  }
}

TEST_P(sql_failover, a_primary_that_became_read_only_is_left) {
  // Broken: clients that fail forever, or, worse, hold and renew on a server that excludes nobody, beside
  // those who went to the new primary; or listens there and is never notified.
  hold_and_wait();
  pair_->make_primary_read_only();
  pair_->catch_up();
  pair_->promote_standby();
  for (const auto& each : couples_) {
    SCOPED_TRACE(each->strategy);
    expect_succession(*each);
  }
  // A client that has sent the new primary any request is notified by it.
  for (const auto& each : couples_) {
    EXPECT_THAT(mutex(each->first, "one").acquire({.wait = patience}), succeeds());
    EXPECT_THAT(mutex(each->second, "other").acquire({.wait = patience}), succeeds());
  }
  EXPECT_TRUE(eventually([&] { return pair_->listeners() == 2 * couples_.size(); }));
}

TEST_P(sql_failover, grants_that_the_standby_missed_have_smaller_fences_than_those_it_gives) {
  // Broken: the promoted standby gives a fence a second time, and a guard lets two writers in. That it
  // gives the lock a second time is the limit of asynchronous replication: the first holder hears of it
  // with its next renewal.
  for (const auto& each : couples_) {
    each->hold();
    ASSERT_THAT(each->held.release(), succeeds());
  }
  pair_->catch_up();
  pair_->cut();
  for (const auto& each : couples_) {
    for (int missed = 0; missed < 50; ++missed) {
      each->hold();
      ASSERT_THAT(each->held.release(), succeeds());
    }
    each->hold();
  }
  pair_->kill_primary();
  pair_->promote_standby();
  for (const auto& each : couples_) {
    SCOPED_TRACE(each->strategy);
    const auto next = mutex(each->second, "stock").acquire({.wait = patience});
    ASSERT_THAT(next, succeeds());
    EXPECT_GT(next->fence(), each->held.fence());
    EXPECT_TRUE(eventually([&] { return each->held.lost().stop_requested(); }));
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
