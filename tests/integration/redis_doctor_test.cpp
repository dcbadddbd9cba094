// What `doctor` says about a Redis server: each check on a set-up that is broken accordingly.
#include "integration/redis_store_harness.hpp"
#include "stores/redis/doctor.hpp"
#include "stores/redis/scripts.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

namespace holdfast::test {
namespace {

using status = spi::check::status;

class redis_doctor : public testing::Test {
 protected:
  redis_server server;
  std::string options_;

  [[nodiscard]] std::string url(const std::string& credentials) const {
    return "redis://" + credentials + "127.0.0.1:" + std::to_string(server.port()) + options_;
  }
  // The words of the command in docs/stores/redis.md.
  static std::vector<std::string> rights_in_the_manual(const std::string& user = "shop") {
    std::ifstream manual(std::filesystem::path(std::getenv("HOLDFAST_SOURCE_DIR")) / "docs" /
                         "stores" / "redis.md");
    std::string line;
    while (std::getline(manual, line) && !line.starts_with("ACL SETUSER " + user + " ")) {
    }
    std::istringstream from(line);
    return {std::istream_iterator<std::string>(from), {}};
  }
  [[nodiscard]] spi::check check(const std::string& name, const std::string& credentials = {}) {
    const client mine = open_client(url(credentials));
    const auto checks = mine.probe();
    if (!checks) throw lock_error(checks.error());
    for (const spi::check& each : *checks) {
      if (each.name == name) return each;
    }
    throw std::runtime_error("no check " + name);
  }
};

TEST_F(redis_doctor, a_healthy_server_fails_in_nothing) {
  // Broken: false alarms, and nobody reads the right ones.
  server.cli({"CONFIG", "SET", "appendonly", "yes"});
  const client mine = open_client(redis_url(server.port()));
  const auto checks = mine.probe();
  ASSERT_TRUE(checks) << checks.error().message();
  for (const spi::check& each : *checks) {
    EXPECT_EQ(each.state, status::ok) << each.name << ": " << each.detail;
  }
  EXPECT_GE(checks->size(), 10U);
  EXPECT_EQ(server.cli({"KEYS", "*"}), "");  // nothing of its trials is left
}

TEST(redis_doctor_tries, what_the_library_calls_and_nothing_else) {
  // Broken: a missing right would be found by the first lock, or an unnecessary one would be
  // demanded.
  const std::string text = redis::library_text();
  const std::regex by_name("(?:call|try|paged)\\('([A-Z]+)'");
  std::set<std::string> called{"PUBLISH", "SCAN"};  // by the kind of channel; by a listing
  for (std::sregex_iterator at(text.begin(), text.end(), by_name), end; at != end; ++at) {
    called.insert((*at)[1]);
  }
  EXPECT_EQ(called.erase("TIME") + called.erase("INFO"), 2U);  // by doctor's own questions
  std::set<std::string> tried;
  for (const auto& each : redis::native_requirements(nullptr).calls) {
    tried.insert(each.words.front());
  }
  EXPECT_EQ(called, tried);
}

TEST_F(redis_doctor, eviction_fails) {
  // Broken (H33): locks would be deleted by a full server without a warning.
  server.cli({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_EQ(check("eviction").state, status::warn);
  server.cli({"CONFIG", "SET", "maxmemory", "100mb"});
  const spi::check found = check("eviction");
  EXPECT_EQ(found.state, status::fail);
  EXPECT_THAT(found.remedy, testing::HasSubstr("noeviction"));
}

TEST_F(redis_doctor, memory_that_runs_out_is_reported) {
  // Broken (H34): the first lock that cannot be taken would be the first sign.
  const long used = server.info("used_memory");
  server.cli({"CONFIG", "SET", "maxmemory", std::to_string(used + used / 20)});
  EXPECT_NE(check("memory").state, status::ok);
  EXPECT_THAT(check("memory").detail, testing::HasSubstr("%"));
}

TEST_F(redis_doctor, persistence_that_is_off_or_failing_is_reported) {
  // Broken: a restart would forget all locks, to everybody's surprise.
  EXPECT_EQ(check("persistence").state, status::warn);
  server.cli({"CONFIG", "SET", "appendonly", "yes"});
  server.cli({"CONFIG", "SET", "appendfsync", "always"});
  EXPECT_EQ(check("persistence").state, status::ok);
  std::filesystem::create_directory(server.folder() / "dump.rdb");
  EXPECT_TRUE(eventually([&] { return server.info("aof_rewrite_in_progress") == 0; }));
  server.cli({"BGSAVE"});
  EXPECT_TRUE(eventually([&] { return check("persistence").state == status::fail; }));
}

TEST_F(redis_doctor, replicas_are_reported) {
  // Broken (H44): users would learn only during a failover that it may forget locks.
  const redis_server replica(
      {false, {"--replicaof", "127.0.0.1", std::to_string(server.port())}, {}});
  EXPECT_TRUE(eventually([&] { return check("replicas").state == status::warn; }));
}

TEST_F(redis_doctor, permissions_that_are_missing_are_named) {
  // Broken: only the first waiting writer would find out.
  server.cli({"ACL", "SETUSER", "shop", "on", ">secret", "+@all", "-hset", "-publish", "-zscore",
              "~holdfast:*", "resetchannels", "&holdfast:*"});
  const spi::check commands = check("permissions", "shop:secret@");
  EXPECT_EQ(commands.state, status::fail);
  EXPECT_THAT(commands.remedy, testing::HasSubstr("ACL SETUSER shop"));
  EXPECT_THAT(commands.remedy, testing::HasSubstr("+hset"));
  EXPECT_THAT(commands.remedy, testing::HasSubstr("+publish"));
  EXPECT_THAT(commands.remedy, testing::HasSubstr("+zscore"));
  server.cli({"ACL", "SETUSER", "other", "on", ">secret", "+@all", "~other:*", "&*"});
  EXPECT_THAT(check("permissions", "other:secret@").remedy, testing::HasSubstr("~holdfast:*"));
  server.cli({"ACL", "SETUSER", "deaf", "on", ">secret", "+@all", "~holdfast:*", "resetchannels"});
  EXPECT_EQ(check("channels", "deaf:secret@").state, status::fail);
  EXPECT_THAT(check("channels", "deaf:secret@").remedy, testing::HasSubstr("&holdfast:*"));
}

TEST_F(redis_doctor, rights_on_functions_and_scripts_that_are_missing_are_named) {
  // Broken: no lock could be taken, for a reason that nobody finds.
  const auto without = [&](const std::string& user, const std::vector<std::string>& missing) {
    std::vector<std::string> words{"ACL", "SETUSER", user, "on", ">secret", "+@all", "~*", "&*"};
    words.insert(words.end(), missing.begin(), missing.end());
    server.cli(words);
    return user + ":secret@";
  };
  spi::check found = check("scripts", without("no-load", {"-function|load"}));
  EXPECT_EQ(found.state, status::fail);
  EXPECT_THAT(found.detail, testing::HasSubstr("function|load"));
  EXPECT_THAT(found.remedy, testing::HasSubstr("holdfast redis-library"));
  // An administrator loads it; from then on that right is not needed.
  server.cli({"FUNCTION", "LOAD", redis::library_text()});
  found = check("scripts", "no-load:secret@");
  EXPECT_EQ(found.state, status::ok) << found.detail;
  found = check("scripts", without("no-call", {"-fcall"}));
  EXPECT_EQ(found.state, status::fail);
  EXPECT_THAT(found.remedy, testing::HasSubstr("+fcall"));
  // With ?functions=off neither is needed, but scripts are.
  options_ = "?functions=off";
  EXPECT_EQ(check("scripts", "no-call:secret@").state, status::ok);
  found = check("scripts", without("no-scripts", {"-eval", "-evalsha"}));
  EXPECT_EQ(found.state, status::fail);
  EXPECT_THAT(found.remedy, testing::HasSubstr("+evalsha"));
}

TEST_F(redis_doctor, the_rights_of_the_manual_are_enough) {
  // Broken: a user who follows the manual could take no lock.
  for (const char* const how : {"", "?functions=off"}) {
    options_ = how;
    server.cli({"FUNCTION", "FLUSH"});
    server.cli({"ACL", "DELUSER", "shop"});
    server.cli(rights_in_the_manual());
    const client mine = open_client(url("shop:PASSWORD@"));
    const auto checks = mine.probe();
    ASSERT_TRUE(checks) << checks.error().message();
    for (const spi::check& each : *checks) {
      EXPECT_NE(each.state, status::fail) << each.name << ": " << each.detail;
    }
    mutex stock(mine, "stock");
    EXPECT_TRUE(stock.try_lock());
    stock.unlock();
  }
}

TEST_F(redis_doctor, the_rights_of_the_manual_are_enough_for_foreign_dialects) {
  // Broken: doctor asks for channels that the dialect does not use, or not for those that it uses.
  for (const auto& [user, dialect] :
       {std::pair{"py", "?dialect=simple"}, std::pair{"java", "?dialect=redisson"}}) {
    options_ = dialect;
    server.cli(rights_in_the_manual(user));
    const client mine = open_client(url(std::string(user) + ":PASSWORD@"));
    const auto checks = mine.probe();
    ASSERT_TRUE(checks) << checks.error().message();
    for (const spi::check& each : *checks) {
      EXPECT_NE(each.state, status::fail) << dialect << " " << each.name << ": " << each.detail;
    }
    auto lease = mutex(mine, "stock/42").acquire();
    ASSERT_TRUE(lease) << lease.error().message();
    EXPECT_EQ(told(lease->release()), "ok");
    EXPECT_EQ(server.cli({"KEYS", "*doctor*"}), "");  // nothing of its trials is left
  }
}

TEST_F(redis_doctor, the_channel_of_another_dialect_is_not_enough) {
  // Broken: everything is "ok", and then a release fails.
  options_ = "?dialect=redisson";
  server.cli(
      {"ACL", "SETUSER", "java", "on", ">secret", "+@all", "~*", "resetchannels", "&holdfast:*"});
  const spi::check commands = check("permissions", "java:secret@");
  EXPECT_EQ(commands.state, status::fail);
  EXPECT_THAT(commands.remedy, testing::HasSubstr("&redisson_lock__channel:*"));
  const spi::check channels = check("channels", "java:secret@");
  EXPECT_EQ(channels.state, status::fail);
  EXPECT_THAT(channels.remedy, testing::HasSubstr("&redisson_lock__channel:*"));
  server.cli({"ACL", "SETUSER", "java", "resetkeys", "~holdfast:*"});
  EXPECT_THAT(check("permissions", "java:secret@").remedy,
              testing::HasSubstr("~redisson_lock_token:*"));
}

TEST_F(redis_doctor, a_server_that_does_not_answer_is_an_error) {
  // Broken: doctor would hang, or call a dead server healthy.
  const client mine = open_client(redis_url(server.port()));
  server.kill();
  EXPECT_EQ(told(mine.probe()), std::string(describe(errc::unavailable)));
}

// What needs another machine, another clock or a cluster is judged from facts.
TEST(redis_checks, judge_what_cannot_be_built_here) {
  using redis::server_options;
  server_options far;
  far.where = {"db.example", 6379, ""};
  EXPECT_EQ(redis::check_transport(far).state, status::warn);
  EXPECT_EQ(redis::check_access(far).state, status::warn);
  far.password = spi::secret("secret");
  EXPECT_EQ(redis::check_transport(far).state, status::warn);
  EXPECT_THAT(redis::check_transport(far).detail, testing::HasSubstr("password"));
  EXPECT_EQ(redis::check_access(far).state, status::ok);
  EXPECT_EQ(redis::check_clock(1s).state, status::ok);
  EXPECT_EQ(redis::check_clock(-1min).state, status::warn);
  EXPECT_EQ(redis::check_clock(1min).state, status::warn);
  // Broken: a slow answer is mistaken for a slow clock.
  EXPECT_EQ(redis::clock_ahead(105s, 100s, 110s), 0s);
  EXPECT_EQ(redis::clock_ahead(90s, 100s, 110s), -10s);
  EXPECT_EQ(redis::clock_ahead(113s, 100s, 110s), 3s);
  EXPECT_EQ(redis::check_eviction("").state, status::warn);
}

}  // namespace
}  // namespace holdfast::test
