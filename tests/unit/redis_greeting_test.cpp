// The first words on a connection, step by step and without a server.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/greeting.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using redis::greeting;
using redis::reply;
using redis::server_options;
using testing::HasSubstr;
using testing::Not;

reply text(reply::type kind, std::string words) {
  reply made;
  made.kind = kind;
  made.text = std::move(words);
  return made;
}
reply ok() { return text(reply::type::status, "OK"); }
reply bulk(std::string words) { return text(reply::type::string, std::move(words)); }
reply refused(std::string words) { return text(reply::type::error, std::move(words)); }
reply list(std::vector<reply> elements) {
  reply made;
  made.kind = reply::type::array;
  made.elements = std::move(elements);
  return made;
}
reply role(const char* part) { return list({bulk(part)}); }
reply info(const std::string& version) {
  return bulk("# Server\r\nredis_version:" + version +
              "\r\nredis_mode:standalone\r\nrun_id:0123456789\r\n");
}

server_options with_user() {
  server_options options;
  options.where = {"db", 6379, ""};
  options.user = "app";
  options.password = spi::secret("sesame");
  return options;
}
server_options plain() {
  server_options options;
  options.where = {"db", 6379, ""};
  return options;
}

// Feeds the replies in turn; returns the last step's outcome.
result<greeting::step> run(greeting& talk, const std::vector<reply>& replies) {
  result<greeting::step> step = greeting::step::more;
  for (const reply& one : replies) {
    step = talk.take(one);
    if (!step) break;
  }
  return step;
}

TEST(redis_greeting, all_questions_go_out_in_one_burst) {
  // Broken: a connection would cost a round trip per question.
  server_options options = with_user();
  options.database = 2;
  options.name = "me";
  greeting talk(options);
  const std::string sent = talk.take_bytes();
  for (const char* word : {"AUTH", "WHOAMI", "SELECT", "SETNAME", "ROLE", "INFO"}) {
    EXPECT_THAT(sent, HasSubstr(word));
  }
  EXPECT_EQ(talk.take_bytes(), "");
  EXPECT_EQ(run(talk, {ok(), bulk("app"), ok(), ok(), role("master"), info("7.0.15")}),
            greeting::step::finished);
  EXPECT_EQ(talk.server().version, (redis::server_version{7, 0, 15}));
  EXPECT_EQ(talk.server().run_id, "0123456789");
}

TEST(redis_greeting, a_refused_login_is_final_and_reveals_no_secret) {
  // Broken (S5, S1): we would go on as the default user, or print the password.
  const auto options = with_user();
  for (const char* words :
       {"WRONGPASS invalid username-password pair", "ERR something new",
        "ERR unknown command 'AUTH', with args beginning with: 'app' 'sesame'", "NOPERM no"}) {
    greeting talk(options);
    const auto step = talk.take(refused(words));
    ASSERT_FALSE(step) << words;
    EXPECT_EQ(step.error(), errc::denied) << words;
    EXPECT_THAT(step.error().message(), Not(HasSubstr("sesame"))) << words;
  }
  greeting talk(options);
  EXPECT_FALSE(talk.take(bulk("OK"))) << "not even something like it";
}

TEST(redis_greeting, a_server_that_takes_us_for_somebody_else_is_left) {
  // Broken (S5): a proxy that says OK to everything would give us another's rights.
  const auto options = with_user();
  greeting wrong(options);
  EXPECT_FALSE(run(wrong, {ok(), bulk("default")}));
  greeting unasked(options);
  EXPECT_TRUE(run(unasked, {ok(), refused("NOPERM this user has no permissions to run the "
                                          "'acl|whoami' command")}))
      << "few rights are no lie";
}

TEST(redis_greeting, old_servers_are_refused_with_both_versions) {
  // Broken (H42): commands would fail one by one, later.
  const auto options = plain();
  greeting talk(options);
  const auto step = run(talk, {role("master"), info("6.0.16")});
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error(), errc::unsupported);
  EXPECT_THAT(step.error().detail, HasSubstr("6.0.16"));
  EXPECT_THAT(step.error().detail, HasSubstr("6.2"));
  greeting newer(options);
  EXPECT_TRUE(run(newer, {role("master"), info("6.2.0")}));
}

TEST(redis_greeting, a_replica_is_worth_another_try_where_a_master_is_wanted) {
  // Broken: during a failover clients would give up permanently, or write to a replica.
  auto options = plain();
  greeting talk(options);
  const auto step = run(talk, {role("slave"), info("7.0.0")});
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error(), errc::unavailable);
  options.wanted = server_options::role::any;
  greeting any(options);
  EXPECT_TRUE(run(any, {role("slave"), info("7.0.0")}));
}

TEST(redis_greeting, what_is_not_allowed_is_asked_in_another_way) {
  // Broken: a user with the least rights could not connect.
  const auto options = plain();
  const reply no = refused("NOPERM this user has no permissions to run the 'info' command");
  greeting talk(options);
  (void)talk.take_bytes();
  EXPECT_EQ(run(talk, {role("master"), no}), greeting::step::more);
  EXPECT_THAT(talk.take_bytes(), HasSubstr("HELLO"));
  EXPECT_EQ(run(talk, {list({bulk("version"), bulk("7.2.1"), bulk("mode"), bulk("cluster"),
                             bulk("role"), bulk("master")})}),
            greeting::step::finished);
  EXPECT_EQ(talk.server().mode, "cluster");

  greeting neither(options);
  const auto step = run(neither, {role("master"), no, refused("ERR unknown command 'HELLO'")});
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error(), errc::denied);
  EXPECT_THAT(step.error().detail, HasSubstr("+info"));
}

TEST(redis_greeting, a_passing_trouble_is_worth_another_try) {
  // Broken (H36, H40): a server that is loading its data or is full would be given up permanently.
  const auto options = with_user();
  for (const char* words :
       {"ERR max number of clients reached", "BUSY Redis is busy", "LOADING Redis is loading"}) {
    greeting talk(options);
    const auto step = talk.take(refused(words));
    ASSERT_FALSE(step) << words;
    EXPECT_EQ(step.error(), errc::unavailable) << words;
  }
}

TEST(redis_greeting, a_server_without_password_that_wants_one_is_said) {
  // Broken: the user would not learn how to give a password.
  const auto options = plain();
  greeting talk(options);
  const auto step = talk.take(refused("NOAUTH Authentication required."));
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error(), errc::denied);
  EXPECT_THAT(step.error().detail, HasSubstr("--password-file"));
}

}  // namespace
}  // namespace holdfast::test

#endif
