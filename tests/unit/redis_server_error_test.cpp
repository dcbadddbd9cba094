// What error replies mean, and that no secret is repeated from them.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using redis::classify;
using redis::reply;
using redis::to_error;
using redis::trouble;
using testing::HasSubstr;
using testing::Not;

reply saying(std::string text) {
  reply answer;
  answer.kind = reply::type::error;
  answer.text = std::move(text);
  return answer;
}

TEST(redis_server_error, each_has_its_meaning) {
  // Broken (H20): a temporary problem would end a renewal, or a permanent one would be retried
  // forever.
  const std::vector<std::pair<const char*, trouble>> known{
      {"LOADING Redis is loading the dataset in memory", trouble::passing},
      {"BUSY Redis is busy running a script.", trouble::passing},
      {"TRYAGAIN Multiple keys request during rehashing of slot", trouble::passing},
      {"CLUSTERDOWN The cluster is down", trouble::passing},
      {"MASTERDOWN Link with MASTER is down", trouble::passing},
      {"MISCONF Redis is configured to save RDB snapshots", trouble::passing},
      {"NOREPLICAS Not enough good replicas to write.", trouble::passing},
      {"OOM command not allowed when used memory > 'maxmemory'.", trouble::passing},
      {"UNBLOCKED force unblock from blocking operation", trouble::passing},
      {"ERR max number of clients reached", trouble::passing},
      {"READONLY You can't write against a read only replica.", trouble::demoted},
      {"NOPERM this user has no permissions to run the 'set' command", trouble::denied},
      {"NOAUTH Authentication required.", trouble::denied},
      {"WRONGPASS invalid username-password pair or user is disabled.", trouble::denied},
      {"ERR The user executing the script can't run this command or subcommand script: abc",
       trouble::denied},
      {"MOVED 3999 127.0.0.1:6381", trouble::moved},
      {"ASK 3999 127.0.0.1:6381", trouble::ask},
      {"NOSCRIPT No matching script. Please use EVAL.", trouble::no_script},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", trouble::wrong_type},
      {"ERR unknown command 'FOO', with args beginning with: ", trouble::unknown_verb},
      {"ERR syntax error", trouble::other},
      {"BUSYBODY is no code of ours", trouble::other},
      {"", trouble::other},
      // Redis 6.2 wraps what a script's call answered.
      {"ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not "
       "allowed when used memory > 'maxmemory'.",
       trouble::passing},
      {"ERR Error running script (call to f_1): @user_script:1: WRONGTYPE Operation against a key",
       trouble::wrong_type},
      {"ERR Error running script (call to f_1): @user_script:1: attempt to index a nil value",
       trouble::other},
  };
  for (const auto& [text, meaning] : known) EXPECT_EQ(classify(saying(text)), meaning) << text;
}

TEST(redis_server_error, a_demoted_server_is_recognised_however_it_says_so) {
  // Broken: after a failover, the client would stay with the former master: Redis 6.2 wraps the
  // answer of a script's call, and of several claims each has an answer of its own.
  const reply direct = saying("READONLY You can't write against a read only replica.");
  const reply wrapped = saying(
      "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You "
      "can't "
      "write against a read only replica.");
  const reply by_us = saying(
      "ERR Error running script: @user_script: 123: -READONLY You can't write against a read only "
      "replica.");
  const reply other = saying("OOM command not allowed when used memory > 'maxmemory'.");
  const auto each_of = [](const std::vector<reply>& those) {
    reply answer;
    answer.kind = reply::type::array;
    answer.elements = those;
    return answer;
  };
  for (const reply& one : {direct, wrapped, by_us}) {
    EXPECT_TRUE(redis::says_demoted(one)) << one.text;
    EXPECT_EQ(classify(one), trouble::demoted) << one.text;
    EXPECT_TRUE(redis::says_demoted(each_of({other, one}))) << one.text;
  }
  EXPECT_FALSE(redis::says_demoted(other));
  EXPECT_FALSE(redis::says_demoted(each_of({other, reply{}})));
  reply text;
  text.kind = reply::type::string;
  text.text = direct.text;
  EXPECT_FALSE(redis::says_demoted(text));
}

TEST(redis_server_error, codes_follow_from_the_meaning) {
  // Broken: the core would take an unknown outcome for a definite one, or the other way round.
  const auto code = [](const char* text) { return to_error(saying(text), "SET", "redis").code; };
  EXPECT_EQ(code("OOM command not allowed"), errc::unavailable);
  EXPECT_EQ(code("READONLY You can't write"), errc::unavailable);
  EXPECT_EQ(code("NOPERM this user"), errc::denied);
  EXPECT_EQ(code("WRONGTYPE Operation"), errc::name_conflict);
  EXPECT_EQ(code("ERR unknown command 'X'"), errc::unsupported);
  EXPECT_EQ(code("ERR anything else"), errc::unavailable);
}

TEST(redis_server_error, arguments_that_the_server_repeats_are_cut_off) {
  // Broken (S1, S9): passwords and claim ids, which unlock, would appear in logs.
  const auto told = to_error(
      saying("ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' 'secret'"),
      "EVALSHA", "redis h:1");
  EXPECT_THAT(told.detail, Not(HasSubstr("secret")));
  EXPECT_THAT(told.detail, HasSubstr("redis h:1, EVALSHA"));
  EXPECT_THAT(to_error(saying("ERR " + std::string(10'000, 'x')), "SET", "redis").detail.size(),
              testing::Lt(500U));
}

TEST(redis_server_error, refusals_say_what_to_grant) {
  // Broken: the user would have to guess the rule.
  const redis::grants wanted{"~holdfast:*", "&holdfast:*"};
  const auto remedy = [&](const char* text) {
    return to_error(saying(text), "EVALSHA", "redis", wanted).detail;
  };
  EXPECT_THAT(remedy("NOPERM this user has no permissions to run the 'client|setname' command"),
              HasSubstr("+client|setname"));
  EXPECT_THAT(remedy("NOPERM User a has no permissions to run the 'set' command"),
              HasSubstr("+set"));
  EXPECT_THAT(remedy("NOPERM this user has no permissions to access one of the keys used as "
                     "arguments"),
              HasSubstr("~holdfast:*"));
  EXPECT_THAT(remedy("NOPERM No permissions to access a key"), HasSubstr("~holdfast:*"));
  EXPECT_THAT(remedy("NOPERM this user has no permissions to access one of the channels used as "
                     "arguments"),
              HasSubstr("&holdfast:*"));
  EXPECT_THAT(remedy("NOPERM whatever"), HasSubstr("+evalsha"));
}

}  // namespace
}  // namespace holdfast::test

#endif
