// strategy=row: a row's lock in a transaction that stays open. How it interacts with callers' own
// transactions, and that connections are bounded.
#ifdef HOLDFAST_WITH_MARIADB

#include "integration/mariadb_harness.hpp"

#include <holdfast/mariadb.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using mariadb::lock_in_transaction;

class mariadb_row_locks : public testing::Test {
 protected:
  mariadb_row_locks() { options_.prefix = prefix_; }

  // A caller's own session.
  [[nodiscard]] static mariadb_session caller() {
    auto own = admin_of(shared_mariadb());
    own.ask("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    return own;
  }
  [[nodiscard]] result<fence_token> in_transaction(const mariadb_session& of,
                                                   const std::string& name) const {
    return lock_in_transaction(of.get(), name, options_);
  }

  const std::string prefix_ = fresh_prefix();
  const std::string url_ = shared_mariadb().url(prefix_, "&strategy=row");
  const client a_ = open_client(url_);
  mariadb::transaction_lock_options options_;
};

TEST_F(mariadb_row_locks, callers_own_transactions_and_holds_exclude_each_other) {
  // Broken: a service that locks in its transaction, and a job that holds the same name, work at
  // the same time.
  auto held = mutex(a_, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  auto own = caller();
  own.ask("START TRANSACTION");
  EXPECT_THAT(in_transaction(own, "stock"), fails_with(errc::busy));
  ASSERT_THAT(held->release(), succeeds());
  const auto fence = in_transaction(own, "stock");
  ASSERT_THAT(fence, succeeds());
  EXPECT_GT(*fence, held->fence());
  EXPECT_THAT(mutex(a_, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  // A name that the caller's transaction is the first to use.
  ASSERT_THAT(in_transaction(own, "new"), succeeds());
  EXPECT_THAT(mutex(a_, "new").acquire({.wait = 0s}), fails_with(errc::busy));
  reply<lease> waits;
  mutex(a_, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a_, "stock", 1));
  own.ask("COMMIT");
  const auto next = waits.future.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), *fence);
  EXPECT_THAT(mutex(a_, "new").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_row_locks, a_wait_is_limited_and_leaves_the_settings_alone) {
  // Broken: a call that never ends, or statements of the caller that time out because of us.
  ASSERT_THAT(mutex(a_, "made").acquire({.wait = patience}), succeeds());
  auto first = caller();
  auto second = caller();
  second.ask("SET SESSION innodb_lock_wait_timeout = 77");
  first.ask("START TRANSACTION");
  second.ask("START TRANSACTION");
  ASSERT_THAT(in_transaction(first, "stock"), succeeds());
  options_.wait = 50ms;
  EXPECT_THAT(in_transaction(second, "stock"), fails_with(errc::timed_out));
  EXPECT_EQ(second.ask("SELECT @@innodb_lock_wait_timeout").front(), "77");
  first.ask("COMMIT");
  // The other transaction has not failed with the refusal, and may go on.
  EXPECT_THAT(in_transaction(second, "stock"), succeeds());
  EXPECT_EQ(second.ask("SELECT @@innodb_lock_wait_timeout").front(), "77");
}

TEST_F(mariadb_row_locks, work_and_lock_are_committed_together) {
  // Broken: a sale that is counted twice.
  constexpr int threads = 6;
  constexpr int rounds = 20;
  ASSERT_THAT(mutex(a_, "made").acquire({.wait = patience}), succeeds());
  const std::string table = prefix_ + "stock";
  admin_of(shared_mariadb()).ask("CREATE TABLE " + table + " AS SELECT 0 AS sold");
  options_.wait = patience;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        auto own = caller();
        for (int round = 0; round < rounds; ++round) {
          own.ask("START TRANSACTION");
          EXPECT_THAT(in_transaction(own, "stock"), succeeds());
          const int sold = std::stoi(own.ask("SELECT sold FROM " + table).front());
          own.ask("UPDATE " + table + " SET sold = " + std::to_string(sold + 1));
          own.ask("COMMIT");
        }
      });
    }
  }
  EXPECT_EQ(admin_of(shared_mariadb()).ask("SELECT sold FROM " + table).front(),
            std::to_string(threads * rounds));
}

TEST_F(mariadb_row_locks, a_negative_wait_is_a_try) {
  // Broken: refused here, and a try everywhere else.
  ASSERT_THAT(mutex(a_, "tables").acquire({.wait = patience}), succeeds());
  auto one = caller();
  auto two = caller();
  one.ask("START TRANSACTION");
  two.ask("START TRANSACTION");
  options_.wait = -1h;
  ASSERT_THAT(in_transaction(one, "stock"), succeeds());
  EXPECT_THAT(in_transaction(two, "stock"), fails_with(errc::busy));
}

TEST_F(mariadb_row_locks, what_cannot_work_is_refused) {
  // Broken: a lock that ends at once, or whose transaction sees outdated data.
  auto own = caller();
  EXPECT_THAT(in_transaction(own, "stock"), fails_with(errc::invalid));
  EXPECT_THAT(lock_in_transaction(nullptr, "stock", options_), fails_with(errc::invalid));
  own.ask("START TRANSACTION");
  EXPECT_THAT(in_transaction(own, ""), fails_with(errc::invalid));
  EXPECT_THAT(in_transaction(own, std::string(513, 'x')), fails_with(errc::invalid));
  options_.prefix = "a; DROP";
  EXPECT_THAT(in_transaction(own, "stock"), fails_with(errc::invalid));
  options_.prefix = "nobody_made_it_";
  EXPECT_THAT(in_transaction(own, "stock"), fails_with(errc::unsupported));
  own.ask("ROLLBACK");
  own.ask("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  own.ask("START TRANSACTION");
  EXPECT_THAT(in_transaction(own, "stock"), fails_with(errc::unsupported));
  EXPECT_EQ(own.ask("SELECT 'goes on'").front(), "goes on");
}

TEST_F(mariadb_row_locks, connections_are_bounded) {
  // Broken: each additional lock takes one of the server's connections, until none is left (H78).
  const client few = open_client(url_ + "&connections=2");
  const auto first = mutex(few, "n/1").acquire({.wait = patience});
  const auto second = mutex(few, "n/2").acquire({.wait = patience});
  ASSERT_THAT(second, succeeds());
  const auto refused = mutex(few, "n/3").acquire({.wait = patience});
  EXPECT_THAT(refused, fails_with(errc::overloaded));
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("connections"));
}

TEST_F(mariadb_row_locks, a_transaction_that_the_server_has_ended_holds_nothing) {
  // Broken: the row is free, and its holder continues for a ttl.
  const client b = open_client(url_);
  const auto held = mutex(a_, "stock", {.ttl = 3s}).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  // An administrator deletes rows: the next heartbeat finds that the hold is no longer known.
  admin_of(shared_mariadb()).ask("DELETE FROM " + prefix_ + "holds");
  ASSERT_TRUE(told.wait());
  EXPECT_FALSE(held->valid());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
