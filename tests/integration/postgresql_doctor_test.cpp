// Each check of `doctor` can warn or fail, and says what to do.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace holdfast::test {
namespace {

using status = spi::check::status;
using testing::HasSubstr;

spi::check named(const std::vector<spi::check>& checks, const std::string& name) {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&](const auto& check) { return check.name == name; });
  if (found == checks.end()) return {name, status::ok, "", ""};
  EXPECT_EQ(found->state == status::ok || !found->remedy.empty(), true) << name;
  return *found;
}

std::vector<spi::check> examined(const std::vector<std::string>& facts) {
  const auto options = std::make_shared<const postgresql::server_options>();
  return postgresql::engine(options).examined(facts, true);
}

std::vector<spi::check> probe(const std::string& url) { return probed(open_client(url)); }

TEST(postgresql_doctor, finds_nothing_on_a_server_that_is_set_up_well) {
  // Broken: false alarms.
  const std::vector<std::string> facts{"version 15.1",   "fsync on",
                                       "autovacuum on",  "synchronous_commit on",
                                       "connections 5",  "full_page_writes on",
                                       "snapshot_age 0", "max_connections 100",
                                       "slots_held 0",   "tls t",
                                       "tables 0",       "resources 3"};
  for (const auto& each : examined(facts)) {
    EXPECT_EQ(each.state, status::ok) << each.name << ": " << each.detail;
  }
}

TEST(postgresql_doctor, sees_what_makes_hot_rows_slow) {
  // Broken: locks that get slower by the hour, and nobody says why.
  EXPECT_EQ(named(examined({"snapshot_age 3600"}), "snapshots").state, status::warn);
  EXPECT_EQ(named(examined({"slots_held 1"}), "snapshots").state, status::warn);
}

TEST(postgresql_doctor, sees_how_the_server_is_set_up) {
  // Broken: a server that forgets locks in a crash passes.
  postgresql_options options;
  options.settings = {"fsync=on", "max_connections=12", "autovacuum=off"};
  postgresql_server server(options);
  const std::string url = server.url("holdfast", "&connections=8");
  server.sql("CREATE TABLE orders (id int)");
  // Slow steps are done before. A closed connection counts until the server has noticed: only the
  // asking one is left.
  ASSERT_THAT(mutex(open_client(url), "made").acquire({.wait = patience}), succeeds());
  ASSERT_TRUE(eventually([&] {
    return server.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'") ==
           "1";
  }));
  auto checks = probe(url);
  EXPECT_EQ(named(checks, "durability").state, status::ok);
  EXPECT_EQ(named(checks, "connections").state, status::ok);
  EXPECT_EQ(named(checks, "autovacuum").state, status::warn);
  EXPECT_EQ(named(checks, "database").state, status::warn);
  EXPECT_EQ(named(checks, "wake-ups").state, status::ok);
  server.sql("ALTER ROLE tester SET synchronous_commit = off");
  const postgresql_session one = admin_of(server);
  const postgresql_session two = admin_of(server);
  checks = probe(url);
  EXPECT_EQ(named(checks, "durability").state, status::warn);
  EXPECT_EQ(named(checks, "connections").state, status::warn);
  // And an open snapshot counts, according to its age.
  EXPECT_EQ(named(checks, "snapshots").state, status::ok);
  EXPECT_EQ(named(probe(shared_postgresql().url(fresh_schema())), "durability").state,
            status::warn);
}

TEST(postgresql_doctor, prints_what_an_administrator_has_to_run) {
  // Broken: a user who may not create tables has to guess them.
  auto admin = admin_of(shared_postgresql());
  admin.run(
      "DROP ROLE IF EXISTS patient; CREATE ROLE patient LOGIN; "
      "REVOKE CREATE ON DATABASE postgres FROM PUBLIC");
  const std::string schema = fresh_schema();
  const std::string url =
      "postgresql://patient@127.0.0.1:" + std::to_string(shared_postgresql().port()) +
      "/postgres?schema=" + schema;
  const auto check = named(probe(url), "schema");
  EXPECT_EQ(check.state, status::fail);
  ASSERT_THAT(check.remedy, HasSubstr("GRANT"));
  // The script works as printed: run unchanged, it helps.
  admin.run(check.remedy.substr(check.remedy.find('\n')));
  EXPECT_EQ(named(probe(url), "schema").state, status::ok);
}

TEST(postgresql_doctor, says_when_nobody_answers) {
  // Broken: an outage that looks like a healthy server.
  const auto checks = open_client("postgresql://tester@127.0.0.1:1/postgres").probe();
  ASSERT_THAT(checks, succeeds());
  EXPECT_EQ(named(*checks, "server").state, status::fail);
}

}  // namespace
}  // namespace holdfast::test

#endif
