// strategy=row: a row's lock in a transaction that stays open. How it interacts with the server and
// with callers' own transactions, and that connections are bounded.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/engine.hpp"

#include <holdfast/postgresql.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class postgresql_row_locks : public testing::Test {
 protected:
  [[nodiscard]] result<fence_token> in_transaction(postgresql_session& of,
                                                   const std::string& name) {
    return postgresql::lock_in_transaction(of.get(), name, {.schema = schema_});
  }
  [[nodiscard]] static spi::claim_ptr claim_number(std::uint8_t number, const std::string& name) {
    auto made = std::make_shared<spi::claim>();
    made->id.bytes[0] = number;
    made->resource = {"", name};
    made->ttl = 30s;
    return made;
  }
  const std::string schema_ = fresh_schema();
  const std::string url_ = shared_postgresql().url(schema_, "&strategy=row");
};

TEST_F(postgresql_row_locks, callers_own_transactions_and_holds_exclude_each_other) {
  // Broken: a service that locks in its transaction, and a job that holds the same name, work at
  // the same time.
  const client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  admin.run("BEGIN");
  EXPECT_THAT(in_transaction(admin, "stock"), fails_with(errc::busy));
  ASSERT_THAT(held->release(), succeeds());
  const auto fence = in_transaction(admin, "stock");
  ASSERT_THAT(fence, succeeds());
  EXPECT_GT(*fence, held->fence());
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  // A name that the caller's transaction is the first to use.
  ASSERT_THAT(in_transaction(admin, "new"), succeeds());
  EXPECT_THAT(mutex(a, "new").acquire({.wait = 0s}), fails_with(errc::busy));
  reply<lease> waits;
  mutex(a, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  admin.run("COMMIT");
  const auto next = waits.future.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), *fence);
  EXPECT_THAT(mutex(a, "new").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_row_locks, a_reader_lets_readers_in_and_no_writer) {
  // Broken: FOR SHARE is not what readers take.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto reading = shared_mutex(a, "price").acquire_shared({.wait = patience});
  ASSERT_THAT(reading, succeeds());
  auto another = shared_mutex(b, "price").acquire_shared({.wait = 0s});
  ASSERT_THAT(another, succeeds());
  ASSERT_THAT(another->release(), succeeds());
  EXPECT_THAT(shared_mutex(b, "price").acquire({.wait = 0s}), fails_with(errc::busy));
  auto admin = admin_of(shared_postgresql());
  admin.run("BEGIN");
  EXPECT_THAT(in_transaction(admin, "price"), fails_with(errc::busy));
  admin.run("ROLLBACK");
  ASSERT_THAT(reading->release(), succeeds());
  EXPECT_THAT(shared_mutex(b, "price").acquire({.wait = 0s}), succeeds());
}

TEST_F(postgresql_row_locks, connections_are_bounded_and_waiters_have_none) {
  // Broken: each additional lock or waiter takes one of the server's connections, until none is
  // left (H78).
  const std::string few = url_ + "&connections=3&application_name=" + schema_;
  const client a = open_client(few);
  std::vector<lease> held;
  for (int i = 0; i < 3; ++i) {
    auto got = mutex(a, "n/" + std::to_string(i)).acquire({.wait = patience});
    ASSERT_THAT(got, succeeds());
    held.push_back(*std::move(got));
  }
  const auto refused = mutex(a, "n/3").acquire({.wait = patience});
  EXPECT_THAT(refused, fails_with(errc::overloaded));
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("connections"));
  held.clear();
  const client b = open_client(url_);
  auto first = mutex(b, "w/0").acquire({.wait = patience});
  auto second = mutex(b, "w/1").acquire({.wait = patience});
  ASSERT_THAT(second, succeeds());
  std::stop_source stop;
  std::vector<std::unique_ptr<reply<lease>>> waits;
  for (int i = 0; i < 20; ++i) {
    waits.push_back(std::make_unique<reply<lease>>());
    shared_mutex(a, "w/" + std::to_string(i % 2))
        .async_acquire_shared({}, stop.get_token(), waits.back()->callback());
  }
  ASSERT_TRUE(has_waiters(b, "w/0", 10));
  auto admin = admin_of(shared_postgresql());
  // Three for locks, one that listens, one for looks.
  EXPECT_TRUE(eventually([&] {
    return std::stoi(admin
                         .ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" +
                              schema_ + "'")
                         .front()) <= 5;
  }));
  stop.request_stop();
  for (auto& each : waits) EXPECT_THAT(each->future.get(), fails_with(errc::cancelled));
}

TEST_F(postgresql_row_locks, a_transaction_that_the_server_has_ended_holds_nothing) {
  // Broken: an error ends the transaction, the row is free, and its holder continues for a ttl.
  const client a = open_client(url_);
  const client b = open_client(url_);
  const auto held = mutex(a, "stock", {.ttl = 3s}).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  auto admin = admin_of(shared_postgresql());
  // Its next heartbeat fails: a difference is out of range. A function that is renamed would be
  // found by an open transaction that has called it before.
  const std::string holds = "UPDATE " + schema_ + ".holds SET revoked = ";
  admin.run(holds + "1, ends = -9223372036854775808");
  ASSERT_TRUE(told.wait());
  EXPECT_FALSE(held->valid());
  admin.run(holds + "0, ends = 9223372036854775807");
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_row_locks, an_attempt_waits_for_a_connection_no_longer_than_it_may) {
  // Broken: it waits for as long as the attempt before it, however long that takes.
  EXPECT_THAT(mutex(open_client(url_), "stock").acquire({.wait = patience}), succeeds());
  fault_proxy proxy(shared_postgresql().port());
  const std::string url = by_port(url_ + "&connections=1", proxy.port());
  const auto store = *postgresql::open_postgresql(*spi::parse_url(url), spi::make_reactor(), {});
  ASSERT_THAT(attempted(*store, claim_number(1, "stock")), succeeds());
  left(*store, claim_number(1, "stock"));
  proxy.lose(fault_proxy::way::to_client);
  std::promise<result<spi::outcome>> slow;
  store->attempt(claim_number(2, "stock"), std::make_shared<silent_wakeup>(),
                 {.deadline = clock::now() + patience},
                 [&](result<spi::outcome> answer) { slow.set_value(std::move(answer)); });
  const auto refused = attempted(*store, claim_number(3, "other"), clock::now() + 100ms);
  ASSERT_THAT(refused, fails_with(errc::unavailable));
  EXPECT_TRUE(refused.error().unsent);
  auto first = slow.get_future();
  EXPECT_EQ(first.wait_for(0s), std::future_status::timeout);
  store->close();
  EXPECT_THAT(first.get(), fails_with(errc::unavailable));
}

TEST_F(postgresql_row_locks, an_attempt_that_was_not_sent_ends_no_connection) {
  // Broken: an attempt that comes too late to be sent closes a connection that is in order.
  EXPECT_THAT(mutex(open_client(url_), "stock").acquire({.wait = patience}), succeeds());
  const auto store = *postgresql::open_postgresql(*spi::parse_url(url_ + "&connections=1"),
                                                  spi::make_reactor(), {});
  auto admin = admin_of(shared_postgresql());
  const auto carrier = [&] { return admin.ask("SELECT pid FROM " + schema_ + ".holds"); };
  ASSERT_THAT(attempted(*store, claim_number(1, "stock")), succeeds());
  const auto before = carrier();
  ASSERT_EQ(before.size(), 1U);
  left(*store, claim_number(1, "stock"));
  const auto refused = attempted(*store, claim_number(2, "stock"), clock::now() - 1s);
  ASSERT_THAT(refused, fails_with(errc::unavailable));
  EXPECT_TRUE(refused.error().unsent);
  ASSERT_THAT(attempted(*store, claim_number(3, "stock")), succeeds());
  EXPECT_EQ(carrier(), before);
  store->close();
}

}  // namespace
}  // namespace holdfast::test

#endif
