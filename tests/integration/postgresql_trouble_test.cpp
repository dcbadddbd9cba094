// The store when the server stops, ends connections, refuses writes or cannot be reached: nobody is
// stuck, nobody is valid wrongly, nothing is left behind.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "support/also_longer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::test {
namespace {

using shutdown = postgresql_server::shutdown;

class postgresql_trouble : public testing::Test {
 protected:
  const std::string url_ = troubled_server().url(fresh_schema());
};

TEST_F(postgresql_trouble, a_lease_outlives_a_restart_of_the_server) {
  // Broken: every restart of the database loses all locks.
  for (const shutdown how : {shutdown::fast, shutdown::immediate}) {
    const client a = open_client(url_);
    const client b = open_client(url_);
    auto held = mutex(a, "stock", {.ttl = 60s}).acquire();
    ASSERT_THAT(held, succeeds());
    const auto before = held->fence();
    troubled_server().restart(how);
    EXPECT_TRUE(held->valid());
    EXPECT_TRUE(waits_in_vain(
        1s, [&](duration wait) { return mutex(b, "stock").acquire({.wait = wait}); }));
    ASSERT_TRUE(is_back(a, "stock"));
    EXPECT_THAT(held->release(), succeeds());
    const auto next = mutex(b, "stock").acquire({.wait = patience});
    ASSERT_THAT(next, succeeds());
    EXPECT_GT(next->fence(), before);
  }
}

TEST_F(postgresql_trouble, a_waiter_keeps_waiting_across_a_restart) {
  // Broken: a waiter that hangs forever, or gives up, because a connection ended.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto held = mutex(a, "stock", {.ttl = 60s}).acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = 4 * patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  troubled_server().restart(shutdown::immediate);
  ASSERT_TRUE(is_back(a, "stock"));
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(postgresql_trouble, killed_backends_cost_nobody_a_lock) {
  // Broken: an administrator's pg_terminate_backend, or an idle-session killer, loses locks (H75).
  const client a = open_client(url_);
  const client b = open_client(url_);
  const auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = 4 * patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  auto admin = admin_of(troubled_server());
  // Waits until each has ended: a request to one that is still ending would get no answer.
  const auto killed = admin.ask(
      "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity "
      "WHERE application_name = 'holdfast'");
  EXPECT_GE(std::stoi(killed.front()), 4);
  EXPECT_TRUE(is_back(b, "stock"));
  ASSERT_TRUE(is_back(a, "stock"));
  EXPECT_TRUE(held->valid());
  ASSERT_THAT(client(a).revoke("stock", spi::revocation::force), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(postgresql_trouble, a_wake_up_that_is_lost_delays_by_a_second_only) {
  // Broken: a half-open connection of wake-ups, and a waiter that sleeps beside a free lock.
  fault_proxy proxy(troubled_server().port());
  const client a = open_client(url_);
  const client b = open_client(by_port(url_, proxy.port()) + "&connections=1");
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  // Only the connection that listens is gone, and cannot come back.
  auto admin = admin_of(troubled_server());
  proxy.refuse();
  ASSERT_TRUE(eventually([&] {
    return admin
               .ask(
                   "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                   "query LIKE 'LISTEN hf_%'")
               .front() != "0";
  }));
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future, 15s));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(postgresql_trouble, a_holder_that_is_cut_off_is_invalid_first) {
  // Broken: two holders across a cut cable (H24, H76).
  fault_proxy proxy(troubled_server().port());
  const client a = open_client(by_port(url_, proxy.port()));
  const client b = open_client(url_);
  const auto held = mutex(a, "stock", {.ttl = 500ms}).acquire();
  ASSERT_THAT(held, succeeds());
  const std::stop_token lost = held->lost();
  proxy.lose(fault_proxy::way::to_server);
  proxy.lose(fault_proxy::way::to_client);
  const auto next = mutex(b, "stock").acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(lost.stop_requested() || eventually([&] { return lost.stop_requested(); }));
  EXPECT_GT(next->fence(), held->fence());
}

TEST_F(postgresql_trouble, a_stopped_server_answers_nobody_and_goes_on) {
  // Broken: a call that never ends, or a client that must be restarted after it.
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire(), succeeds());
  troubled_server().pause();
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 300ms}), fails_with(errc::unavailable));
  troubled_server().resume();
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_trouble, a_server_that_takes_no_writes_is_an_outage) {
  // Broken: a standby after a failover that answers "denied", or is never left again.
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire(), succeeds());
  auto admin = admin_of(troubled_server());
  admin.run("ALTER SYSTEM SET default_transaction_read_only = on");
  admin.run("SELECT pg_reload_conf()");
  ASSERT_TRUE(
      eventually([&] { return admin.ask("SHOW default_transaction_read_only").front() == "on"; }));
  EXPECT_TRUE(eventually([&] {
    const auto answer = mutex(a, "stock").acquire({.wait = 0s});
    return !answer && answer.error() == errc::unavailable;
  }));
  admin.run("SET default_transaction_read_only = off");
  admin.run("ALTER SYSTEM RESET default_transaction_read_only");
  admin.run("SELECT pg_reload_conf()");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_trouble, a_lock_timeout_of_the_server_leaves_nothing_behind) {
  // Broken: a lock granted to nobody because the wait for its row had timed out (T25).
  const client a = open_client(url_);
  const client b = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire(), succeeds());
  const std::string schema = url_.substr(url_.find("schema=") + 7);
  {
    auto foreign = admin_of(troubled_server());
    foreign.run("BEGIN");
    foreign.ask("SELECT id FROM " + schema + ".resources FOR UPDATE");
    EXPECT_THAT(mutex(a, "stock").acquire({.wait = 6s}), fails_with(errc::unavailable));
    foreign.run("ROLLBACK");
  }
  EXPECT_TRUE(becomes_free(b, "stock"));
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_trouble, a_row_that_a_stranger_keeps_locked_is_no_outage) {
  // Broken: a server that answers is taken for unreachable, and a lock that excludes nobody is
  // granted.
  const std::string rows = url_.substr(url_.find("schema=") + 7) + ".resources";
  // A server that does not answer within a third of the ttl is rightly taken for unreachable.
  EXPECT_TRUE(also_longer(600ms, [&](duration ttl) {
    const client a = open_client(url_ + "&degrade=local&breaker=1&breaker_pause=100ms");
    mutex stock(a, "stock", {.ttl = ttl});
    {
      const auto first = stock.acquire({.wait = patience});
      EXPECT_THAT(first, succeeds());
      if (!first || first->degraded()) return testing::AssertionFailure() << "not heard at first";
    }
    auto foreign = admin_of(troubled_server());
    foreign.run("BEGIN");
    foreign.ask("SELECT id FROM " + rows + " FOR UPDATE");
    const auto refused = stock.acquire({.wait = 3 * ttl});
    foreign.run("ROLLBACK");
    if (refused) return testing::AssertionFailure() << "granted beside a row that is locked";
    EXPECT_THAT(refused, fails_with(errc::unavailable));
    const auto next = stock.acquire({.wait = patience});
    EXPECT_THAT(next, succeeds());
    if (next && next->degraded()) return testing::AssertionFailure() << "it is degraded";
    return testing::AssertionSuccess();
  }));
}

TEST_F(postgresql_trouble, a_deadlock_that_the_server_breaks_costs_no_lease) {
  // Broken: the server's choice of a victim is a lost lock (H79).
  const client a = open_client(url_ + "&connections=1");
  const std::string schema = url_.substr(url_.find("schema=") + 7);
  const auto row = [&](const char* name) {
    return "SELECT id FROM " + schema + ".resources WHERE key = convert_to('/" + name +
           "', 'UTF8') FOR UPDATE";
  };
  auto foreign = admin_of(troubled_server());
  auto watcher = admin_of(troubled_server());
  foreign.run("SET deadlock_timeout = '10min'");
  EXPECT_TRUE(also_longer(6s, [&](duration ttl) {
    const auto first = mutex(a, "a", {.ttl = ttl}).acquire({.wait = patience});
    const auto second = mutex(a, "b", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(first, succeeds());
    EXPECT_THAT(second, succeeds());
    if (!first || !second) return testing::AssertionFailure() << "not granted";
    foreign.run("BEGIN");
    foreign.ask(row("b"));
    // The renewal of both has locked the first row and waits for the second.
    EXPECT_TRUE(eventually([&] {
      return watcher
                 .ask(
                     "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' "
                     "AND wait_event_type = 'Lock'")
                 .front() != "0";
    }));
    foreign.ask(row("a"));
    foreign.run("COMMIT");
    return both_go_on(*first, *second);
  }));
}

TEST_F(postgresql_trouble, no_connection_left_is_an_outage_that_ends) {
  // Broken: the server's limit is taken for a refusal, or causes a storm of attempts (H78).
  std::vector<postgresql_session> sessions;
  EXPECT_THROW(
      {
        for (int i = 0; i < 300; ++i) sessions.push_back(admin_of(troubled_server()));
      },
      std::runtime_error);
  const client a = open_client(url_);
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 300ms}), fails_with(errc::unavailable));
  sessions.clear();
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_trouble, a_client_of_one_name_has_one_connection_beside_the_listening_one) {
  // Broken: each wrapped job makes the server start a process for nothing.
  auto admin = admin_of(troubled_server());
  for (int i = 0; i < 8; ++i) {
    const std::string application = fresh_schema();
    const client a = open_client(url_ + "&application_name=" + application);
    ASSERT_THAT(mutex(a, std::to_string(i)).acquire({.wait = patience}), succeeds());
    const auto connected = admin.ask(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '" + application + "'");
    EXPECT_LE(std::stoi(connected.front()), 2);
  }
}

TEST_F(postgresql_trouble, a_schema_that_is_dropped_meanwhile_is_made_again) {
  // Broken: a client that fails forever after somebody deleted its tables.
  const client a = open_client(url_);
  const auto held = mutex(a, "stock", {.ttl = 2s}).acquire();
  ASSERT_THAT(held, succeeds());
  const std::string schema = url_.substr(url_.find("schema=") + 7);
  auto admin = admin_of(troubled_server());
  admin.run("DROP SCHEMA " + schema + " CASCADE");
  EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  const auto next = mutex(a, "other").acquire({.wait = patience});
  EXPECT_THAT(next, succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
