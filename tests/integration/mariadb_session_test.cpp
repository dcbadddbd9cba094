// strategy=session: named locks of one connection. How the server and other programs see them, and
// that a failed call leaves none behind.
#ifdef HOLDFAST_WITH_MARIADB

#include "integration/mariadb_harness.hpp"
#include "stores/mariadb/engine.hpp"
#include "support/also_longer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class mariadb_session_locks : public testing::Test {
 protected:
  // The server's lock, as documented in docs/formats/sql.md, not as the procedure computes it.
  [[nodiscard]] std::string lock_of(const std::string& name) const {
    return "CONCAT('hfl_', LEFT(SHA2('locks." + prefix_ + "/" + name + "', 256), 48))";
  }
  [[nodiscard]] bool is_free(mariadb_session& admin, const std::string& name) const {
    return admin.ask("SELECT IS_FREE_LOCK(" + lock_of(name) + ")").front() == "1";
  }

  const std::string prefix_ = fresh_prefix();
  const std::string url_ = troubled_mariadb().url(prefix_, "&strategy=session");
};

TEST_F(mariadb_session_locks, a_hold_is_a_named_lock_that_other_programs_can_respect) {
  // Broken: the documented name is not the one that is locked.
  client a = open_client(url_);
  auto admin = admin_of(troubled_mariadb());
  const std::string take = "SELECT GET_LOCK(" + lock_of("stock") + ", 0)";
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  EXPECT_EQ(admin.ask(take).front(), "0");
  ASSERT_THAT(held->release(), succeeds());
  EXPECT_EQ(admin.ask(take).front(), "1");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(shared_mutex(a, "stock").acquire_shared({.wait = 0s}), fails_with(errc::busy));
  const auto state = a.inspect("stock");
  ASSERT_THAT(state, succeeds());
  ASSERT_EQ(state->holders.size(), 1U);
  EXPECT_FALSE(state->holders[0].fence.has_value());
  EXPECT_EQ(state->holders[0].payload, "a session outside holdfast");
  const auto refused = a.revoke("stock", revocation::force);
  ASSERT_THAT(refused, fails_with(errc::unsupported));
  EXPECT_THAT(refused.error().detail,
              testing::HasSubstr("KILL " + admin.ask("SELECT CONNECTION_ID()").front()));
  // Nobody notifies us when it is free: found by polling.
  reply<lease> waits;
  mutex(a, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  EXPECT_EQ(admin.ask("SELECT RELEASE_LOCK(" + lock_of("stock") + ")").front(), "1");
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(mariadb_session_locks, the_first_behind_a_session_outside_looks_often) {
  // Broken: another program's release is noticed up to a second late.
  auto admin = admin_of(troubled_mariadb());
  EXPECT_THAT(mutex(open_client(url_), "often").acquire({.wait = patience}), succeeds());
  ASSERT_TRUE(eventually(
      [&] { return admin.ask("SELECT GET_LOCK(" + lock_of("often") + ", 0)").front() == "1"; }));
  const auto store = *mariadb::open_mariadb(*spi::parse_url(url_), spi::make_reactor(), {});
  look_often_if_first(*store, "often");
  EXPECT_EQ(admin.ask("SELECT RELEASE_LOCK(" + lock_of("often") + ")").front(), "1");
}

TEST_F(mariadb_session_locks, a_row_of_an_earlier_connection_of_the_same_number_is_in_nobodys_way) {
  // Broken: a restarted server numbers its connections from 1 again, and a client that gets a dead
  // holder's number takes the row for its own, and waits for itself.
  const client a = open_client(url_);
  auto admin = admin_of(troubled_mariadb());
  auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  const std::string holds = prefix_ + "holds";
  const int now =
      std::stoi(admin.ask("SELECT MAX(id) FROM information_schema.processlist").front());
  for (int pid = now + 1; pid <= now + 50; ++pid) {
    admin.ask("INSERT INTO " + holds + " SELECT UNHEX(MD5(" + std::to_string(pid) +
              ")), strategy, name," + " number, " + std::to_string(pid) +
              ", 'another', public, mode, revoked, told, fence, since," +
              " ends, ttl, delay, payload FROM " + holds + " WHERE process <> 'another'");
  }
  ASSERT_THAT(held->release(), succeeds());
  const client b = open_client(url_);
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_session_locks, readers_let_each_other_in_and_no_writer) {
  // Broken: named locks have no shared mode, and two readers exclude each other, or let a writer
  // in.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto reading = shared_mutex(a, "price").acquire_shared({.wait = patience});
  ASSERT_THAT(reading, succeeds());
  auto another = shared_mutex(b, "price").acquire_shared({.wait = 0s});
  ASSERT_THAT(another, succeeds());
  EXPECT_THAT(shared_mutex(a, "price").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(mutex(b, "price").acquire({.wait = 0s}), fails_with(errc::busy));
  ASSERT_THAT(reading->release(), succeeds());
  EXPECT_THAT(mutex(a, "price").acquire({.wait = 0s}), fails_with(errc::busy));
  ASSERT_THAT(another->release(), succeeds());
  EXPECT_THAT(mutex(a, "price").acquire({.wait = 0s}), succeeds());
}

TEST_F(mariadb_session_locks, two_names_of_one_lock_are_distinguished) {
  // Broken: a collision of hashes makes two locks one, or two waiters a dead-lock (H80).
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "first").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(troubled_mariadb());
  admin.ask("CREATE OR REPLACE PROCEDURE " + prefix_ +
            "number_3(IN k VARBINARY(600), OUT n VARBINARY(64)) SQL SECURITY INVOKER "
            "SET n = 'hfl_4711'");
  const client b = open_client(url_);
  auto held = mutex(a, "first").acquire();
  ASSERT_THAT(held, succeeds());
  for (const client& from : {a, b}) {
    EXPECT_THAT(mutex(from, "second").acquire({.wait = patience}), fails_with(errc::name_conflict));
    EXPECT_THAT(mutex(from, "first").acquire({.wait = 0s}), fails_with(errc::busy));
  }
  ASSERT_THAT(held->release(), succeeds());
  const auto second = mutex(b, "second").acquire({.wait = 0s});
  EXPECT_THAT(second, succeeds());
  EXPECT_THAT(mutex(a, "first").acquire({.wait = patience}), fails_with(errc::name_conflict));
}

TEST_F(mariadb_session_locks, one_connection_carries_them_all) {
  // Broken: each lock, or each waiter, costs a connection (H78).
  auto admin = admin_of(troubled_mariadb());
  const auto connections = [&] {
    return std::stoi(admin
                         .ask("SELECT COUNT(*) FROM information_schema.processlist "
                              "WHERE user = 'tester' AND id <> CONNECTION_ID()")
                         .front());
  };
  ASSERT_TRUE(eventually([&] { return connections() == 0; }));
  const client a = open_client(url_);
  const client b = open_client(url_);
  std::vector<lease> held;
  std::vector<std::unique_ptr<reply<lease>>> waits;
  for (int i = 0; i < 50; ++i) {
    auto got = mutex(a, "many/" + std::to_string(i)).acquire({.wait = patience});
    ASSERT_THAT(got, succeeds());
    held.push_back(*std::move(got));
    waits.push_back(std::make_unique<reply<lease>>());
    mutex(b, "many/" + std::to_string(i))
        .async_acquire({.wait = 4 * patience}, {}, waits.back()->callback());
  }
  ASSERT_TRUE(has_waiters(a, "many/49", 1));
  // Per client: one that carries the locks, one that listens, one for looks.
  EXPECT_TRUE(eventually([&] { return connections() <= 6; }));
  EXPECT_EQ(admin.ask("SELECT COUNT(DISTINCT pid) FROM " + prefix_ + "holds").front(), "1");
  held.clear();
  for (auto& each : waits) EXPECT_THAT(each->future.get(), succeeds());
}

TEST_F(mariadb_session_locks, a_call_that_fails_leaves_no_lock_behind) {
  // Broken: an error is reported although the lock was taken, and nobody ever releases it (T25).
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(troubled_mariadb());
  // After the lock was taken, before its holder is recorded.
  admin.ask("CREATE TRIGGER " + prefix_ + "trap BEFORE INSERT ON " + prefix_ +
            "holds FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 1s}), fails_with(errc::unavailable));
  EXPECT_TRUE(eventually([&] { return is_free(admin, "stock"); }));
  admin.ask("DROP TRIGGER " + prefix_ + "trap");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  // The row that everybody needs is locked by a foreign transaction.
  auto foreign = admin_of(troubled_mariadb());
  foreign.ask("START TRANSACTION");
  foreign.ask("SELECT name FROM " + prefix_ + "bound_names FOR UPDATE");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 4s}), fails_with(errc::unavailable));
  foreign.ask("ROLLBACK");
  EXPECT_TRUE(eventually([&] { return is_free(admin, "stock"); }));
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_session_locks, a_call_that_is_killed_leaves_no_lock_behind) {
  // Broken: the call is repeated and takes the lock a second time: released once, it stays (H80).
  const client a = open_client(url_);
  auto first = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(first, succeeds());
  ASSERT_THAT(first->release(), succeeds());
  auto admin = admin_of(troubled_mariadb());
  // Delays the call after the lock was taken, before its holder is recorded.
  auto foreign = admin_of(troubled_mariadb());
  foreign.ask("SELECT GET_LOCK('" + prefix_ + "stop', 0)");
  admin.ask("CREATE TRIGGER " + prefix_ + "trap BEFORE INSERT ON " + prefix_ +
            "holds FOR EACH ROW SET @waits = GET_LOCK('" + prefix_ + "stop', 20)");
  reply<lease> answer;
  mutex(a, "stock").async_acquire({.wait = patience}, {}, answer.callback());
  ASSERT_TRUE(eventually([&] { return !is_free(admin, "stock"); }));
  const std::string carrier = admin.ask("SELECT IS_USED_LOCK(" + lock_of("stock") + ")").front();
  admin.ask("KILL QUERY " + carrier);
  foreign.ask("SELECT RELEASE_LOCK('" + prefix_ + "stop')");
  auto held = answer.future.get();
  ASSERT_THAT(held, succeeds());
  ASSERT_THAT(held->release(), succeeds());
  // Not at once: the killed call may be checking whether it is free.
  EXPECT_TRUE(eventually([&] { return is_free(admin, "stock"); }));
}

TEST_F(mariadb_session_locks, a_hold_that_cannot_be_given_back_ends_with_its_connection) {
  // Broken: a release fails, and its connection keeps the lock for as long as it lives.
  const client a = open_client(url_);
  auto admin = admin_of(troubled_mariadb());
  auto held = mutex(a, "kept").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  const std::string refuse = "CREATE TRIGGER " + prefix_ + "trap BEFORE DELETE ON " + prefix_ +
                             "holds FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'";
  admin.ask(refuse);
  EXPECT_THAT(held->release(), fails_with(errc::unavailable));
  EXPECT_TRUE(eventually([&] { return is_free(admin, "kept"); }));
  admin.ask("DROP TRIGGER " + prefix_ + "trap");
  // Given back by the store itself, when its time is over.
  const auto ends = mutex(a, "ends", {.ttl = 1s, .renew = renew::never, .lock_delay = 1ms})
                        .acquire({.wait = patience});
  ASSERT_THAT(ends, succeeds());
  admin.ask(refuse);
  EXPECT_TRUE(eventually([&] { return is_free(admin, "ends"); }));
  admin.ask("DROP TRIGGER " + prefix_ + "trap");
  EXPECT_THAT(mutex(a, "kept").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_session_locks, a_connection_that_is_not_its_own_is_refused) {
  // Broken: a proxy that lends connections, and two clients that share one's locks (H77).
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(troubled_mariadb());
  const std::string call = "CALL " + prefix_ +
                           "session_attempt_3('/other', REPEAT('x', 16), 'x', 'x', 0, 0, 1000000, "
                           "0, 1, '', ";
  try {
    admin.ask(call + std::to_string(admin.id() + 1) + ")");
    ADD_FAILURE() << "a lock of somebody else's connection";
  } catch (const std::runtime_error& refused) {
    EXPECT_THAT(refused.what(), testing::HasSubstr("proxy"));
  }
  EXPECT_TRUE(is_free(admin, "other"));
}

TEST_F(mariadb_session_locks, the_connection_of_a_holder_is_not_taken_for_a_new_one) {
  // Broken: a proxy lends it to a second client, which takes the hold for that of a vanished
  // client; the server grants a connection what it already has, and two have the lock (H77).
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "other").acquire({.wait = patience}), succeeds());
  auto lent = admin_of(troubled_mariadb());
  const std::string home = std::to_string(lent.id());
  lent.ask("CALL " + prefix_ + "begin_3('first')");
  const auto attempt = [&](const std::string& id) {
    return lent
        .ask("CALL " + prefix_ + "session_attempt_3('/stock', UNHEX(MD5('" + id + "')), '" + id +
             "', 'first', 0, 0, 30000000, 0, 1, '', " + home + ")")
        .front()
        .front();
  };
  ASSERT_EQ(attempt("one"), 'g');
  EXPECT_THROW(lent.ask("CALL " + prefix_ + "begin_3('second')"), std::runtime_error);
  EXPECT_EQ(attempt("two"), 'b');
  // Once released, the connection may serve anybody.
  lent.ask("CALL " + prefix_ + "session_leave_3('/stock', UNHEX(MD5('one')), 0, " + home + ")");
  EXPECT_NO_THROW(lent.ask("CALL " + prefix_ + "begin_3('second')"));
}

TEST_F(mariadb_session_locks, a_connection_that_the_server_would_end_too_early_carries_none) {
  // Broken: a server gives a half-open holder's lock away while the holder still considers it valid
  // (H76).
  auto admin = admin_of(troubled_mariadb());
  admin.ask("SET GLOBAL tcp_keepalive_time = 5");
  {
    const client a = open_client(url_);
    EXPECT_TRUE(eventually([&] {
      const auto refused = mutex(a, "stock").acquire({.wait = 1s});
      return !refused && refused.error() == errc::unsupported;
    }));
  }
  admin.ask("SET GLOBAL tcp_keepalive_time = 0");
  const client b = open_client(url_);
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_session_locks, a_silent_server_is_tolerated_as_long_as_the_lease_is_valid) {
  // Broken: one slow answer, and all locks of the client are gone.
  const client a = open_client(url_);
  EXPECT_TRUE(also_longer(6s, [&](duration ttl) {
    const auto held = mutex(a, "stock", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    troubled_mariadb().pause();
    // Longer than a connection without locks may be silent.
    EXPECT_THAT(mutex(a, "other").acquire({.wait = ttl * 5 / 12}), fails_with(errc::unavailable));
    troubled_mariadb().resume();
    EXPECT_THAT(mutex(a, "other").acquire({.wait = patience}), succeeds());
    return held->valid() ? testing::AssertionSuccess() : testing::AssertionFailure() << "lost";
  }));
}

}  // namespace
}  // namespace holdfast::test

#endif
