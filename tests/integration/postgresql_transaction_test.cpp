// Locks inside a caller's own transaction, and the guard for fences in the caller's own tables.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/schema.hpp"

#include <holdfast/postgresql.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using postgresql::lock_in_transaction;

class postgresql_transaction : public testing::Test {
 protected:
  postgresql_transaction() {
    options_.schema = fresh_schema();
    admin_of(shared_postgresql()).run(postgresql::installation(options_.schema));
  }

  postgresql::transaction_lock_options options_;
};

TEST_F(postgresql_transaction, the_lock_ends_with_the_transaction) {
  // Broken: two transactions inside, or a lock that outlives its transaction.
  auto a = admin_of(shared_postgresql());
  auto b = admin_of(shared_postgresql());
  std::uint64_t last = 0;
  for (const char* end : {"COMMIT", "ROLLBACK"}) {
    a.run("BEGIN");
    b.run("BEGIN");
    const auto held = lock_in_transaction(a.get(), "stock", options_);
    ASSERT_THAT(held, succeeds());
    EXPECT_GT(held->value(), last);
    EXPECT_THAT(lock_in_transaction(b.get(), "stock", options_), fails_with(errc::busy));
    EXPECT_THAT(lock_in_transaction(b.get(), "other", options_), succeeds());
    a.run(end);
    // The other transaction has not failed with the refusal, and may go on.
    const auto next = lock_in_transaction(b.get(), "stock", options_);
    ASSERT_THAT(next, succeeds());
    EXPECT_GT(next->value(), held->value());
    last = next->value();
    b.run("COMMIT");
  }
}

TEST_F(postgresql_transaction, the_lock_ends_with_the_connection) {
  // Broken: a crashed program holds its lock forever.
  auto b = admin_of(shared_postgresql());
  {
    auto a = admin_of(shared_postgresql());
    a.run("BEGIN");
    ASSERT_THAT(lock_in_transaction(a.get(), "stock", options_), succeeds());
  }
  b.run("BEGIN");
  options_.wait = patience;
  EXPECT_THAT(lock_in_transaction(b.get(), "stock", options_), succeeds());
}

TEST_F(postgresql_transaction, a_wait_is_limited_and_leaves_the_settings_alone) {
  // Broken: a call that never ends, or statements of the caller that time out because of us.
  auto a = admin_of(shared_postgresql());
  auto b = admin_of(shared_postgresql());
  b.run("SET lock_timeout = '77s'");
  a.run("BEGIN");
  b.run("BEGIN");
  ASSERT_THAT(lock_in_transaction(a.get(), "stock", options_), succeeds());
  options_.wait = 50ms;
  EXPECT_THAT(lock_in_transaction(b.get(), "stock", options_), fails_with(errc::timed_out));
  EXPECT_EQ(b.ask("SHOW lock_timeout").front(), "77s");
  a.run("COMMIT");
  EXPECT_THAT(lock_in_transaction(b.get(), "stock", options_), succeeds());
  EXPECT_EQ(b.ask("SHOW lock_timeout").front(), "77s");
}

TEST_F(postgresql_transaction, a_negative_wait_is_a_try) {
  // Broken: refused here, and a try everywhere else.
  auto a = admin_of(shared_postgresql());
  auto b = admin_of(shared_postgresql());
  a.run("BEGIN");
  b.run("BEGIN");
  options_.wait = -1h;
  ASSERT_THAT(lock_in_transaction(a.get(), "stock", options_), succeeds());
  EXPECT_THAT(lock_in_transaction(b.get(), "stock", options_), fails_with(errc::busy));
}

TEST_F(postgresql_transaction, work_and_lock_are_committed_together) {
  // Broken: a sale that is counted twice.
  constexpr int threads = 8;
  constexpr int rounds = 25;
  const std::string table = options_.schema + "_stock";
  admin_of(shared_postgresql()).run("CREATE TABLE " + table + " AS SELECT 0 AS sold");
  options_.wait = patience;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        auto own = admin_of(shared_postgresql());
        for (int round = 0; round < rounds; ++round) {
          own.run("BEGIN");
          EXPECT_THAT(lock_in_transaction(own.get(), "stock", options_), succeeds());
          const int sold = std::stoi(own.ask("SELECT sold FROM " + table).front());
          own.run("UPDATE " + table + " SET sold = " + std::to_string(sold + 1));
          own.run("COMMIT");
        }
      });
    }
  }
  EXPECT_EQ(admin_of(shared_postgresql()).ask("SELECT sold FROM " + table).front(),
            std::to_string(threads * rounds));
}

TEST_F(postgresql_transaction, what_cannot_work_is_refused) {
  // Broken: a lock that ends at once, or whose transaction sees outdated data.
  auto a = admin_of(shared_postgresql());
  EXPECT_THAT(lock_in_transaction(a.get(), "stock", options_), fails_with(errc::invalid));
  EXPECT_THAT(lock_in_transaction(nullptr, "stock", options_), fails_with(errc::invalid));
  a.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  EXPECT_THAT(lock_in_transaction(a.get(), "stock", options_), fails_with(errc::unsupported));
  a.run("ROLLBACK");
  a.run("BEGIN");
  EXPECT_THAT(lock_in_transaction(a.get(), "", options_), fails_with(errc::invalid));
  EXPECT_THAT(lock_in_transaction(a.get(), std::string(513, 'x'), options_),
              fails_with(errc::invalid));
  options_.schema = "a; DROP";
  EXPECT_THAT(lock_in_transaction(a.get(), "stock", options_), fails_with(errc::invalid));
  options_.schema = "nobody_made_it";
  EXPECT_THAT(lock_in_transaction(a.get(), "stock", options_), fails_with(errc::unsupported));
  EXPECT_EQ(a.ask("SELECT 'goes on'").front(), "goes on");
}

TEST_F(postgresql_transaction, the_guard_refuses_an_older_fence_and_what_is_no_fence) {
  // Broken: a paused holder overwrites its successor's work; or a holder that only a local fallback
  // let in makes the first write.
  auto a = admin_of(shared_postgresql());
  const std::string guard = options_.schema + ".fence_guard";
  a.run("CREATE TEMP TABLE stock (n int, fence bigint)");
  a.run("INSERT INTO stock VALUES (5, NULL)");
  const auto write = [&](const char* fence) {
    a.run(std::string("UPDATE stock SET n = n - 1, fence = ") + guard + "(fence, " + fence + ")");
  };
  for (const char* none : {"0", "-1", "NULL"})
    EXPECT_THROW(write(none), std::runtime_error) << none;
  write("7");
  write("7");
  write("9");
  EXPECT_THROW(write("8"), std::runtime_error);
  EXPECT_THROW(write("NULL"), std::runtime_error);
  EXPECT_EQ(a.ask("SELECT n::text || ' ' || fence FROM stock").front(), "2 9");
}

}  // namespace
}  // namespace holdfast::test

#endif
