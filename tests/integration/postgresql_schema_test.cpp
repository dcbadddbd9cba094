// How the tables are created, who may create them, and what else may be there.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/schema.hpp"
#include "support/postgresql_calls.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

TEST(postgresql_schema, fifty_first_clients_make_it_once) {
  // Broken: the first start of a fleet fails with "already exists" (a race of CREATE IF NOT EXISTS).
  const std::string url = shared_postgresql().url(fresh_schema(), "&connections=1");
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

TEST(postgresql_schema, a_user_that_may_not_create_learns_what_to_grant) {
  // Broken: locks need the rights of an administrator.
  const std::string schema = fresh_schema();
  auto admin = admin_of(shared_postgresql());
  admin.run(
      "DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN; "
      "REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
  const std::string url =
      "postgresql://plain@127.0.0.1:" + std::to_string(shared_postgresql().port()) +
      "/postgres?schema=" + schema;
  {
    const client a = open_client(url);
    const auto refused = mutex(a, "stock").acquire({.wait = patience});
    EXPECT_THAT(refused, fails_with(errc::denied));
    EXPECT_THAT(refused.error().detail, testing::HasSubstr("holdfast doctor"));
  }
  admin.run(postgresql::installation_for(schema, "plain"));
  const client a = open_client(url);
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  latch start(a, "start");
  EXPECT_THAT(start.set(2), succeeds());
  EXPECT_THAT(start.count_down(), succeeds());
  EXPECT_THAT(a.list(), succeeds());
  EXPECT_THAT(a.observe("stock", [](const spi::store_event&) {}), succeeds());
}

TEST(postgresql_schema, a_former_or_newer_format_is_refused) {
  // Broken: a client writes into tables that it does not understand.
  const std::string schema = fresh_schema();
  auto admin = admin_of(shared_postgresql());
  admin.run(postgresql::installation(schema));
  for (const char* other : {"2", "4"}) {
    admin.run("UPDATE " + schema + ".meta SET format = " + other);
    for (const char* strategy : {"lease", "session", "row"}) {
      const client a =
          open_client(shared_postgresql().url(schema, "&strategy=" + std::string(strategy)));
      const auto refused = mutex(a, "stock").acquire({.wait = patience});
      EXPECT_THAT(refused, fails_with(errc::unsupported));
      EXPECT_THAT(refused.error().detail, testing::HasSubstr("format " + std::string(other)));
    }
  }
}

TEST(postgresql_schema, what_the_role_has_set_does_not_matter) {
  // Broken: a role's own settings break locks: another isolation, time-outs, a search path (H76).
  constexpr const char* settings[] = {
      "default_transaction_isolation = 'serializable'",
      "default_transaction_read_only = on",
      "default_transaction_deferrable = on",
      "statement_timeout = '1ms'",
      "lock_timeout = '1ms'",
      "idle_session_timeout = '100ms'",
      "idle_in_transaction_session_timeout = '1ms'",
      "search_path = 'nowhere'",
      "bytea_output = 'escape'",
      "client_min_messages = 'debug5'",
      "client_encoding = 'LATIN1'",
      "standard_conforming_strings = off",
      "escape_string_warning = on",
      "extra_float_digits = 0",
      "DateStyle = 'SQL, DMY'",
      "IntervalStyle = 'sql_standard'",
      "TimeZone = 'Pacific/Auckland'",
      "array_nulls = off",
      "transform_null_equals = on",
      "check_function_bodies = off",
      "plan_cache_mode = 'force_custom_plan'",
      "enable_indexscan = off",
      "row_security = off",
  };
  auto admin = admin_of(shared_postgresql());
  for (const char* setting : settings) {
    SCOPED_TRACE(setting);
    const std::string schema = fresh_schema();
    const std::string role = "odd_" + schema;
    admin.run("CREATE ROLE " + role + " LOGIN SUPERUSER; ALTER ROLE " + role + " SET " + setting);
    const std::string url = "postgresql://" + role +
                            "@127.0.0.1:" + std::to_string(shared_postgresql().port()) +
                            "/postgres?schema=" + schema;
    const client a = open_client(url);
    const client b = open_client(url);
    auto held = mutex(a, "stock", {.ttl = 30s}).acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    reply<lease> waits;
    mutex(b, "stock").async_acquire({.wait = patience}, {}, waits.callback());
    ASSERT_TRUE(has_waiters(a, "stock", 1));
    EXPECT_THAT(held->release(), succeeds());
    EXPECT_THAT(waits.future.get(), succeeds());
    EXPECT_TRUE(eventually([&] {
      return admin
                 .ask("SELECT count(*) FROM pg_stat_activity WHERE usename = '" + role +
                      "' AND state LIKE 'idle in%'")
                 .front() == "0";
    }));
  }
}

TEST(postgresql_schema, names_that_nobody_used_for_a_day_are_forgotten) {
  // Broken: a table that grows with every order's lock, forever.
  const std::string schema = fresh_schema();
  auto admin = admin_of(shared_postgresql());
  admin.run(postgresql::installation(schema));
  const auto attempt = [&](int i) {
    const auto claim = claim_on("order/" + std::to_string(i), 1);
    admin.ask("SELECT " + schema + "." + attempt_call(claim, "p1"));
  };
  for (int i = 1000; i < 1200; ++i) attempt(i);
  EXPECT_EQ(admin.ask("SELECT count(*) FROM " + schema + ".resources").front(), "200");
  // Two days later.
  admin.run("CREATE OR REPLACE FUNCTION " + schema +
            ".clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM "
            "clock_timestamp() + interval '2 days') * 1000000)::bigint $$");
  for (int i = 2000; i < 2040; ++i) attempt(i);
  EXPECT_EQ(admin.ask("SELECT count(*) FROM " + schema + ".resources").front(), "40");
}

TEST(postgresql_schema, observers_see_every_change_and_dead_ones_slow_nothing_down) {
  // Broken: a missed event; or one crashed observer, after which every lock of the schema takes the
  // slow path forever.
  const std::string schema = fresh_schema();
  auto admin = admin_of(shared_postgresql());
  admin.run(postgresql::installation(schema));
  const auto later = [&](const std::string& seconds) {
    admin.run("CREATE OR REPLACE FUNCTION " + schema +
              ".clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT 1000000000 + 1000000 * " +
              seconds + "::bigint $$");
  };
  const auto listen = [&](const std::string& process, const std::string& seconds) {
    admin.ask("SELECT " + schema + ".interest_3('{\"\\\\x2f78\"}', '{}', '" + process +
              "', 1000000 * " + seconds + "::bigint)");
  };
  // Takes a lock that nobody observes by name, and releases it. Inline: the fast path.
  const auto held_inline = [&] {
    const auto claim = claim_on("stock", 1);
    admin.ask("SELECT " + schema + "." + attempt_call(claim, "p1"));
    const bool found =
        admin.ask("SELECT inline_holder IS NOT NULL FROM " + schema + ".resources").front() == "t";
    EXPECT_EQ(admin.ask("SELECT " + schema + "." + leave_call(claim, 0, 1'000'000)).front(), "h");
    return found;
  };
  later("0");
  held_inline();  // the name's first time makes its row
  later("1");
  EXPECT_TRUE(held_inline());
  listen("p2", "30");
  listen("p3", "1");  // must not end the other's subscription
  EXPECT_FALSE(held_inline());
  later("29");
  EXPECT_FALSE(held_inline());
  later("31");
  EXPECT_TRUE(held_inline());
  EXPECT_EQ(admin.ask("SELECT count(*) FROM " + schema + ".observers").front(), "2");
  listen("p4", "30");
  EXPECT_FALSE(held_inline());
  EXPECT_EQ(admin.ask("SELECT count(*) FROM " + schema + ".observers").front(), "1");
}

TEST(postgresql_schema, a_wrong_password_is_denied_and_not_repeated) {
  // Broken: a secret in a log (S1).
  postgresql_options options;
  options.access = {"host all all 127.0.0.1/32 scram-sha-256"};
  const postgresql_server server(options);
  server.sql("CREATE ROLE shop LOGIN SUPERUSER PASSWORD 'right-one'");
  const std::string rest =
      "@127.0.0.1:" + std::to_string(server.port()) + "/postgres?connections=1";
  const client wrong = open_client("postgresql://shop:wr0ng-one" + rest);
  const auto refused = mutex(wrong, "stock").acquire({.wait = patience});
  EXPECT_THAT(refused, fails_with(errc::denied));
  EXPECT_THAT(refused.error().message(), testing::Not(testing::HasSubstr("wr0ng-one")));
  const client right = open_client("postgresql://shop:right-one" + rest);
  EXPECT_THAT(mutex(right, "stock").acquire({.wait = patience}), succeeds());
}

TEST(postgresql_schema, a_url_is_read_strictly) {
  // Broken: a misspelt option that is ignored, and locks in the wrong place.
  for (const char* bad : {"postgresql://h/d?schmea=x", "postgresql://h/d?schema=Bad",
                          "postgresql://h/d?schema=a;b", "postgresql://h/d?connections=0",
                          "postgresql://h/d?connections=65", "postgresql://h/d?pooler=transaction",
                          "postgresql://h/d?strategy=luck", "postgresql://h/d?host=relative"}) {
    EXPECT_THAT(client::open(bad), fails_with(errc::invalid)) << bad;
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
