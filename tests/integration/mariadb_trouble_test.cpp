// The store when the server stops, ends connections, refuses writes or cannot be reached: nobody is
// stuck, nobody is valid wrongly, nothing is left behind.
#ifdef HOLDFAST_WITH_MARIADB

#include "integration/mariadb_harness.hpp"
#include "support/also_longer.hpp"
#include "support/recording_observer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class mariadb_trouble : public testing::Test {
 protected:
  // All connections of holdfast but the asking one.
  static std::vector<std::string> connections(mariadb_session& admin) {
    return admin.ask(
        "SELECT id FROM information_schema.processlist WHERE user = 'tester' AND "
        "id <> CONNECTION_ID()");
  }

  // `what`: KILL, or KILL QUERY. Returns the connections that there were.
  static std::vector<std::string> kill_all(mariadb_session& admin, const std::string& what) {
    std::vector<std::string> all = connections(admin);
    for (const std::string& id : all) {
      try {
        admin.ask(what + " " + id);
      } catch (const std::runtime_error&) {
        // It has ended by itself: it was an earlier test's.
      }
    }
    return all;
  }

  // KILL is answered before the connection has ended.
  static bool gone(mariadb_session& admin, const std::vector<std::string>& killed) {
    return eventually([&] {
      const auto left = connections(admin);
      return std::ranges::none_of(
          killed, [&](const std::string& id) { return std::ranges::find(left, id) != left.end(); });
    });
  }

  const std::string prefix_ = fresh_prefix();
  const std::string url_ = troubled_mariadb().url(prefix_);
};

TEST_F(mariadb_trouble, a_server_that_greets_nobody_is_given_up) {
  // Broken: a run that waits forever for a server that never finishes its start.
  troubled_mariadb().pause();
  EXPECT_THROW(troubled_mariadb().sql("SELECT 1", 1s), std::runtime_error);
  troubled_mariadb().resume();
  EXPECT_EQ(troubled_mariadb().sql("SELECT 1"), "1");
}

TEST_F(mariadb_trouble, a_lease_outlives_a_restart_of_the_server) {
  // Broken: every restart of the database loses all locks.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto held = mutex(a, "stock", {.ttl = 60s}).acquire();
  ASSERT_THAT(held, succeeds());
  const auto before = held->fence();
  troubled_mariadb().restart();
  EXPECT_TRUE(held->valid());
  EXPECT_TRUE(
      waits_in_vain(1s, [&](duration wait) { return mutex(b, "stock").acquire({.wait = wait}); }));
  ASSERT_TRUE(is_back(a, "stock"));
  EXPECT_THAT(held->release(), succeeds());
  const auto next = mutex(b, "stock").acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), before);
}

TEST_F(mariadb_trouble, a_waiter_keeps_waiting_across_a_restart) {
  // Broken: a waiter that hangs forever, or gives up, because a connection ended.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto held = mutex(a, "stock", {.ttl = 60s}).acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = 4 * patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  troubled_mariadb().restart();
  ASSERT_TRUE(is_back(a, "stock"));
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(mariadb_trouble, killed_connections_cost_nobody_a_lock) {
  // Broken: an administrator's KILL, or a killer of idle sessions, loses locks (H75, H80).
  const client a = open_client(url_);
  const client b = open_client(url_);
  const auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = 4 * patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  auto admin = admin_of(troubled_mariadb());
  EXPECT_TRUE(eventually([&] { return connections(admin).size() >= 4; }));
  ASSERT_TRUE(gone(admin, kill_all(admin, "KILL")));
  EXPECT_TRUE(is_back(b, "stock"));
  ASSERT_TRUE(is_back(a, "stock"));
  EXPECT_TRUE(held->valid());
  ASSERT_THAT(client(a).revoke("stock", spi::revocation::force), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(mariadb_trouble, statements_that_are_killed_are_asked_again) {
  // Broken: a foreign KILL QUERY fails a lock (H80).
  const client a = open_client(url_ + "&connections=1");
  const client b = open_client(url_ + "&connections=1");
  auto admin = admin_of(troubled_mariadb());
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  for (int round = 0; round < 20; ++round) {
    reply<lease> waits;
    mutex(b, "stock").async_acquire({.wait = patience}, {}, waits.callback());
    kill_all(admin, "KILL QUERY");
    EXPECT_THAT(held->release(), succeeds());
    ASSERT_TRUE(arrives(waits.future));
    ASSERT_THAT(waits.future.get(), succeeds());
    held = mutex(a, "stock").acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
  }
}

TEST_F(mariadb_trouble, a_holder_that_is_cut_off_is_invalid_first) {
  // Broken: two holders across a cut cable (H24).
  fault_proxy proxy(troubled_mariadb().port());
  const client a = open_client(by_port(url_, proxy.port()));
  const client b = open_client(url_);
  const auto held = mutex(a, "stock", {.ttl = 500ms}).acquire({.wait = patience});
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

TEST_F(mariadb_trouble, a_stopped_server_answers_nobody_and_goes_on) {
  // Broken: a call that never ends, or a client that must be restarted after it.
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  troubled_mariadb().pause();
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 300ms}), fails_with(errc::unavailable));
  troubled_mariadb().resume();
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_trouble, a_call_queued_on_an_open_connection_was_not_cut_off) {
  // Broken: a burst was reported as engine_unreachable, with the server connected and at work.
  fault_proxy proxy(troubled_mariadb().port());
  const auto seen = std::make_shared<recording_observer>();
  const client a = open_client(by_port(url_, proxy.port()) + "&connections=1", {.observer = seen});
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  proxy.delay(fault_proxy::way::to_client, 100ms);
  std::atomic<int> answers = 0;
  constexpr int many = 100;
  for (int i = 0; i < many; ++i) {
    mutex(a, "stock/" + std::to_string(i), {.ttl = 1s})
        .async_acquire({.wait = 3s}, {}, [&](const result<lease>&) { ++answers; });
  }
  EXPECT_TRUE(eventually([&] { return answers == many; }));
  EXPECT_TRUE(seen->all(event_kind::engine_unreachable).empty());
}

TEST_F(mariadb_trouble, a_server_that_takes_no_writes_is_an_outage) {
  // Broken: a replica after a failover that answers "denied", or is never left again.
  auto admin = admin_of(troubled_mariadb());
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  admin.ask("SET GLOBAL read_only = 1");
  // A user that may write nevertheless is refused when it connects.
  const client b = open_client(url_);
  EXPECT_TRUE(eventually([&] {
    const auto answer = mutex(b, "stock").acquire({.wait = 0s});
    return !answer && answer.error() == errc::unavailable;
  }));
  admin.ask("SET GLOBAL read_only = 0");
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_trouble, a_lock_timeout_of_the_server_leaves_nothing_behind) {
  // Broken: a lock granted to nobody because the wait for its row had timed out (T25).
  const client a = open_client(url_);
  const client b = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  {
    auto foreign = admin_of(troubled_mariadb());
    foreign.ask("START TRANSACTION");
    foreign.ask("SELECT id FROM " + prefix_ + "resources FOR UPDATE");
    EXPECT_THAT(mutex(a, "stock").acquire({.wait = 4s}), fails_with(errc::unavailable));
    foreign.ask("ROLLBACK");
  }
  EXPECT_TRUE(becomes_free(b, "stock"));
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_trouble, a_deadlock_that_the_server_breaks_costs_no_lease) {
  // Broken: the server's choice of a victim is a lost lock (1213).
  const client a = open_client(url_ + "&connections=1");
  const auto row = [&](const char* name) {
    return "SELECT id FROM " + prefix_ + "resources WHERE name = '/" + name + "' FOR UPDATE";
  };
  auto foreign = admin_of(troubled_mariadb());
  auto watcher = admin_of(troubled_mariadb());
  EXPECT_TRUE(also_longer(6s, [&](duration ttl) {
    const auto first = mutex(a, "a", {.ttl = ttl}).acquire({.wait = patience});
    const auto second = mutex(a, "b", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(first, succeeds());
    EXPECT_THAT(second, succeeds());
    if (!first || !second) return testing::AssertionFailure() << "not granted";
    foreign.ask("START TRANSACTION");
    foreign.ask(row("b"));
    // The renewal of both has locked the first row and waits for the second.
    EXPECT_TRUE(eventually([&] {
      return watcher
                 .ask(
                     "SELECT variable_value FROM information_schema.global_status "
                     "WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'")
                 .front() != "0";
    }));
    // No matter which is the victim: the other one continues.
    try {
      foreign.ask(row("a"));
      foreign.ask("COMMIT");
    } catch (const std::runtime_error&) {
      foreign.ask("ROLLBACK");
    }
    return both_go_on(*first, *second);
  }));
}

TEST_F(mariadb_trouble, no_connection_left_is_an_outage_that_ends) {
  // Broken: the server's limit is taken for a refusal, or causes a storm of attempts (H78).
  auto admin = admin_of(troubled_mariadb());
  ASSERT_TRUE(eventually([&] { return connections(admin).empty(); }));
  admin.ask("SET GLOBAL max_connections = 12");
  std::vector<mariadb_session> sessions;
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) sessions.push_back(admin_of(troubled_mariadb()));
      },
      std::runtime_error);
  const client a = open_client(url_);
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 300ms}), fails_with(errc::unavailable));
  admin.ask("SET GLOBAL max_connections = 300");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_trouble, tables_that_are_dropped_meanwhile_are_made_again) {
  // Broken: a client that fails forever after somebody deleted its tables.
  const client a = open_client(url_);
  const auto held = mutex(a, "stock", {.ttl = 2s}).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  auto admin = admin_of(troubled_mariadb());
  for (const char* each : {"resources", "claims", "meta"}) {
    admin.ask("DROP TABLE " + prefix_ + each);
  }
  EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  EXPECT_THAT(mutex(a, "other").acquire({.wait = patience}), succeeds());
}

TEST_F(mariadb_trouble, tables_that_are_gone_when_they_have_just_been_made_are_made_again) {
  // Broken: a client that reads on behind the end of its script, and dies of it.
  auto admin = admin_of(troubled_mariadb());
  // What is written there is not found later, as if somebody dropped it each time.
  admin.ask("CREATE TABLE " + prefix_ + "aside (only INT, format INT, sweep BIGINT)");
  admin.ask("CREATE VIEW " + prefix_ + "meta AS SELECT only, format, sweep FROM " + prefix_ +
            "aside WHERE format = 99");
  const client a = open_client(url_ + "&connect_timeout=60s");
  reply<lease> waits;
  mutex(a, "stock").async_acquire({.wait = 2 * patience}, {}, waits.callback());
  // More often than there are connections.
  EXPECT_TRUE(eventually([&] {
    return std::stoi(admin.ask("SELECT COUNT(*) FROM " + prefix_ + "aside").front()) >= 20;
  }));
  admin.ask("DROP VIEW " + prefix_ + "meta");
  ASSERT_TRUE(arrives(waits.future, 2 * patience));
  EXPECT_THAT(waits.future.get(), succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
