// How the tables are created, who may create them, which servers are refused, and how a URL is
// read.
#ifdef HOLDFAST_WITH_MARIADB

#include "integration/mariadb_harness.hpp"
#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/schema.hpp"
#include "support/also_longer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

std::string url_of(const std::string& user, const mariadb_server& server,
                   const std::string& prefix) {
  return "mariadb://" + user + "@127.0.0.1:" + std::to_string(server.port()) +
         "/locks?connections=1&prefix=" + prefix;
}

TEST(mariadb_schema, fifty_first_clients_make_it_once) {
  // Broken: the first start of a fleet fails because of a race of CREATE IF NOT EXISTS.
  const std::string url = shared_mariadb().url(fresh_prefix(), "&connections=1");
  std::atomic<int> granted{0};
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 50; ++i) {
      all.emplace_back([&, i] {
        const client own = open_client(url);
        if (mutex(own, "stock/" + std::to_string(i)).acquire({.wait = 4 * patience})) ++granted;
      });
    }
  }
  EXPECT_EQ(granted, 50);
}

TEST(mariadb_schema, a_user_that_may_not_create_learns_what_to_run) {
  // Broken: locks need the rights of an administrator, and doctor's script does not help.
  const std::string prefix = fresh_prefix();
  auto admin = admin_of(shared_mariadb());
  admin.ask("CREATE OR REPLACE USER plain@'%'");
  admin.ask("GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON locks.* TO plain@'%'");
  const std::string url = url_of("plain", shared_mariadb(), prefix);
  std::string script;
  {
    const client a = open_client(url);
    const auto refused = mutex(a, "stock").acquire({.wait = patience});
    EXPECT_THAT(refused, fails_with(errc::denied));
    EXPECT_THAT(refused.error().detail, HasSubstr("holdfast doctor"));
    const std::string remedy = probed(a).front().remedy;
    ASSERT_THAT(remedy, HasSubstr("GRANT"));
    script = remedy.substr(remedy.find('\n'));
  }
  shared_mariadb().sql(script);
  const client a = open_client(url);
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  latch start(a, "start");
  EXPECT_THAT(start.set(2), succeeds());
  EXPECT_THAT(start.count_down(), succeeds());
  EXPECT_THAT(a.list(), succeeds());
  EXPECT_THAT(a.observe("stock", [](const spi::store_event&) {}), succeeds());
}

TEST(mariadb_schema, a_crashed_observer_slows_nobody_down) {
  // Broken: after one crashed observer, every lock of the database takes the slow path until a name
  // is used for the first time.
  for (const char* strategy : {"lease", "session"}) {
    const std::string prefix = fresh_prefix();
    auto admin = admin_of(shared_mariadb());
    const client a =
        open_client(shared_mariadb().url(prefix, "&strategy=" + std::string(strategy)));
    const auto use = [&] {
      auto lease = mutex(a, "stock").acquire({.wait = patience});
      ASSERT_THAT(lease, succeeds());
      EXPECT_THAT(lease->release(), succeeds());
    };
    use();
    admin.ask("INSERT INTO " + prefix + "observers VALUES ('/x', 'crashed', 1)");
    use();
    EXPECT_EQ(admin.ask("SELECT COUNT(*) FROM " + prefix + "observers").front(), "0");
  }
}

TEST(mariadb_schema, a_former_or_newer_format_is_refused) {
  // Broken: a client writes into tables that it does not understand.
  const std::string prefix = fresh_prefix();
  auto admin = admin_of(shared_mariadb());
  for (const std::string& each : mariadb::installation(prefix)) admin.ask(each);
  for (const char* other : {"2", "4"}) {
    admin.ask("UPDATE " + prefix + "meta SET format = " + other);
    for (const char* strategy : {"lease", "session", "row"}) {
      const client a =
          open_client(shared_mariadb().url(prefix, "&strategy=" + std::string(strategy)));
      const auto refused = mutex(a, "stock").acquire({.wait = patience});
      EXPECT_THAT(refused, fails_with(errc::unsupported));
      EXPECT_THAT(refused.error().detail, HasSubstr("format " + std::string(other)));
    }
  }
}

TEST(mariadb_schema, an_installation_that_was_cut_short_is_continued) {
  // Broken: a first client that dies half way leaves a database that nobody can use.
  const std::string prefix = fresh_prefix();
  auto admin = admin_of(shared_mariadb());
  const auto script = mariadb::installation(prefix);
  for (std::size_t i = 0; i < script.size() / 2; ++i) admin.ask(script[i]);
  const client a = open_client(shared_mariadb().url(prefix));
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST(mariadb_schema, what_the_server_has_set_does_not_matter) {
  // Broken: a server's own settings break locks: another isolation, time-outs, a binary log (H80).
  mariadb_options options;
  options.settings = {"transaction-isolation=SERIALIZABLE",
                      "autocommit=0",
                      "wait-timeout=1",
                      "completion-type=CHAIN",
                      "sql-mode=ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
                      "default-time-zone=+05:30",
                      "log-bin="
                      "binlog",
                      "server-id=1",
                      "group-concat-max-len=10",
                      "character-set-server=latin1"};
  const mariadb_server server(options);
  const std::string url = server.url("holdfast_");
  const client a = open_client(url);
  const client b = open_client(url);
  EXPECT_TRUE(also_longer(3s, [&](duration ttl) {
    auto held = mutex(a, "stock", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    reply<lease> waits;
    mutex(b, "stock").async_acquire({.wait = 4 * patience}, {}, waits.callback());
    // Longer than the server's idle time-out, and over a renewal.
    const auto until = held->valid_until();
    const bool renewed = eventually([&] { return held->valid_until() > until || !held->valid(); });
    const bool waited = has_waiters(a, "stock", held->valid() ? 1 : 0);
    const auto released = held->release();
    EXPECT_THAT(waits.future.get(), succeeds());
    if (!renewed || !waited) return testing::AssertionFailure() << "nobody renews, or waits";
    if (released) return testing::AssertionSuccess();
    return testing::AssertionFailure() << released.error().message();
  }));
}

TEST(mariadb_schema, servers_that_cannot_do_it_are_refused_with_the_reason) {
  // Broken: locks that do not exclude, on a cluster that compares too late (T26).
  for (const auto& [setting, word] : {std::pair("wsrep-on=ON", "Galera"),
                                      std::pair("binlog-format=STATEMENT", "binlog_format")}) {
    mariadb_options options;
    options.settings = {setting, "log-bin=binlog", "server-id=1"};
    if (std::string(word) == "Galera") options.settings.push_back("binlog-format=ROW");
    const mariadb_server server(options);
    const client a = open_client(server.url("holdfast_"));
    const auto refused = mutex(a, "stock").acquire({.wait = patience});
    EXPECT_THAT(refused, fails_with(errc::unsupported)) << setting;
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr(word));
  }
}

TEST(mariadb_schema, names_that_nobody_used_for_a_day_are_forgotten) {
  // Broken: a table that grows with every order's lock, forever.
  const std::string prefix = fresh_prefix();
  auto admin = admin_of(shared_mariadb());
  admin.ask("SET SESSION tx_isolation = 'READ-COMMITTED', time_zone = '+00:00'");
  for (const std::string& each : mariadb::installation(prefix)) admin.ask(each);
  const auto attempt = [&](int i) {
    const std::string number = std::to_string(i);
    admin.ask("CALL " + prefix + "attempt_3('/order/" + number + "', UNHEX(LPAD('" + number +
              "', 32, '0')), 'public', 'p1', 0, 1, 1, 0, 1, 1, 1000000, 0, 1, '')");
  };
  for (int i = 1000; i < 1200; ++i) attempt(i);
  EXPECT_EQ(admin.ask("SELECT COUNT(*) FROM " + prefix + "resources").front(), "200");
  // Two days later.
  admin.ask("CREATE OR REPLACE PROCEDURE " + prefix +
            "clock_3(OUT t BIGINT) SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + "
            "2 * 86400000000");
  for (int i = 2000; i < 2040; ++i) attempt(i);
  EXPECT_EQ(admin.ask("SELECT COUNT(*) FROM " + prefix + "resources").front(), "40");
}

TEST(mariadb_schema, what_a_session_begins_with_does_not_matter) {
  // Broken: the server's defaults for sessions break locks: no autocommit, limits, another mode (H76).
  constexpr const char* settings[] = {
      "autocommit = 0",
      "sql_big_selects = 0, max_join_size = 1",
      "sql_select_limit = 0",
      "sql_safe_updates = 1",
      "tx_isolation = 'SERIALIZABLE'",
      "tx_read_only = 1",
      "completion_type = 2",
      "sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'",
      "sql_mode = 'ORACLE'",
      "sql_auto_is_null = 1",
      "max_statement_time = 0.001",
      "lock_wait_timeout = 1",
      "innodb_lock_wait_timeout = 1",
      "wait_timeout = 1, interactive_timeout = 1",
      "idle_transaction_timeout = 1",
      "time_zone = '-11:00'",
      "timestamp = 1",
      "group_concat_max_len = 4",
      "collation_connection = 'utf8mb4_bin'",
      "character_set_results = 'ucs2'",
      "character_set_connection = 'latin1'",
      "max_error_count = 0",
      "max_sort_length = 64",
      "low_priority_updates = 1",
      "optimizer_switch = 'derived_merge=off,semijoin=off'",
  };
  mariadb_server& server = troubled_mariadb();
  auto admin = admin_of(server);
  // A user that may do everything does not run it.
  admin.ask("CREATE OR REPLACE USER odd@'%'");
  admin.ask("GRANT ALL ON locks.* TO odd@'%'");
  for (const char* setting : settings) {
    SCOPED_TRACE(setting);
    admin.ask("SET GLOBAL init_connect = \"SET SESSION " + std::string(setting) + "\"");
    const std::string url = url_of("odd", server, fresh_prefix());
    const client a = open_client(url);
    const client b = open_client(url);
    auto held = mutex(a, "stock", {.ttl = 30s}).acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    reply<lease> waits;
    mutex(b, "stock").async_acquire({.wait = patience}, {}, waits.callback());
    EXPECT_TRUE(has_waiters(a, "stock", held ? 1 : 0));
    if (held) {
      EXPECT_THAT(held->release(), succeeds());
    }
    EXPECT_THAT(waits.future.get(), succeeds());
  }
  admin.ask("SET GLOBAL init_connect = ''");
}

TEST(mariadb_schema, a_wrong_password_is_denied_and_not_repeated) {
  // Broken: a secret in a log (S1); a password file that is ignored.
  auto admin = admin_of(shared_mariadb());
  admin.ask("CREATE OR REPLACE USER shop@'%' IDENTIFIED BY 'right-one'");
  admin.ask("GRANT ALL ON locks.* TO shop@'%'");
  const std::string prefix = fresh_prefix();
  const client wrong = open_client(url_of("shop:wr0ng-one", shared_mariadb(), prefix));
  const auto refused = mutex(wrong, "stock").acquire({.wait = patience});
  EXPECT_THAT(refused, fails_with(errc::denied));
  EXPECT_THAT(refused.error().message(), testing::Not(HasSubstr("wr0ng-one")));
  const client right = open_client(url_of("shop:right-one", shared_mariadb(), prefix));
  EXPECT_THAT(mutex(right, "stock").acquire({.wait = patience}), succeeds());
  const temporary_folder folder;
  const auto file = folder.path() / "client.cnf";
  std::ofstream(file) << "[client]\npassword=right-one\n";
  const client named =
      open_client(url_of("shop", shared_mariadb(), prefix) + "&defaults_file=" + file.string());
  EXPECT_THAT(mutex(named, "other").acquire({.wait = patience}), succeeds());
}

TEST(mariadb_schema, a_unix_socket_will_do) {
  // Broken: a server without a port.
  const client a = open_client("mariadb://tester@/locks?socket=" + shared_mariadb().socket() +
                               "&prefix=" + fresh_prefix());
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

TEST(mariadb_schema, a_url_is_read_strictly) {
  // Broken: a misspelt option that is ignored, and locks in the wrong place.
  for (const char* bad :
       {"mariadb://h/d?prefx=x", "mariadb://h/d?prefix=Bad", "mariadb://h/d?prefix=a;b",
        "mariadb://h/d?connections=0", "mariadb://h/d?connections=65", "mariadb://h",
        "mariadb://h/d?pooler=transaction", "mariadb://h/d?strategy=luck", "mariadb:///d",
        "mariadb:///d?socket=relative", "mariadb://h/d?socket=/x", "mysql://h/d?ssl_mode=maybe"}) {
    EXPECT_THAT(client::open(bad), fails_with(errc::invalid)) << bad;
  }
  const auto mode = [](const char* text) {
    return mariadb::options_from(spi::parse_url(text).value()).value().tls;
  };
  // Broken: a remote host that a man in the middle can impersonate (S4).
  EXPECT_EQ(mode("mariadb://db.example/locks"), mariadb::tls_mode::verified);
  EXPECT_EQ(mode("mysql://127.0.0.1,db.example/locks"), mariadb::tls_mode::verified);
  EXPECT_EQ(mode("mariadb://db.example/locks?ssl_mode=disabled"), mariadb::tls_mode::disabled);
  EXPECT_EQ(mode("mariadb://localhost/locks"), mariadb::tls_mode::disabled);
}

TEST(mariadb_schema, doctor_warns_of_what_forgets) {
  // Broken: a server that forgets locks in a crash passes, or doctor gives false alarms.
  const auto state = [](const std::vector<std::string>& facts, const std::string& name) {
    const auto options = std::make_shared<const mariadb::server_options>();
    const auto all = mariadb::engine(options).examined(facts, true);
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const spi::check& each) { return each.name == name; });
    return found == all.end() ? spi::check::status::ok : found->state;
  };
  const std::vector<std::string> good{"version 10.11",       "flush 1",       "doublewrite ON",
                                      "log_bin 0",           "sync_binlog 0", "connections 5",
                                      "max_connections 151", "history 10",    "resources 3"};
  for (const char* name : {"durability", "connections", "history"}) {
    EXPECT_EQ(state(good, name), spi::check::status::ok) << name;
  }
  EXPECT_EQ(state({"flush 0", "doublewrite ON"}, "durability"), spi::check::status::warn);
  EXPECT_EQ(state({"flush 1", "doublewrite OFF"}, "durability"), spi::check::status::warn);
  EXPECT_EQ(state({"connections 150", "max_connections 151"}, "connections"),
            spi::check::status::warn);
  EXPECT_EQ(state({"history 2000000"}, "history"), spi::check::status::warn);
}

}  // namespace
}  // namespace holdfast::test

#endif
