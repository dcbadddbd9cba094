// What a server must not be able to do: answer with more than we can hold.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "support/redis_server.hpp"

namespace holdfast::test {
namespace {

using testing::HasSubstr;

struct redis_limits : testing::Test {
  redis_server server;
  client_side client;
  std::shared_ptr<connection> line = client.connect(server.port());

  result<redis::reply> eval(const std::string& script) {
    return client.call(line, {"EVAL", script, "0"});
  }
  void expect_refused(const command& what, const std::string& why) {
    const auto answer = client.call(line, what);
    ASSERT_EQ(code(answer), errc::unavailable) << why;
    EXPECT_THAT(answer.error().detail, HasSubstr("protocol error"));
    EXPECT_THAT(answer.error().detail, HasSubstr(why));
    EXPECT_EQ(words(client.call(line, {"PING"})), "PONG") << "on a new connection";
  }
  // A value of this many bytes, without sending them.
  void make_value(const std::string& key, std::size_t size) {
    const auto made = client.call(line, {"SETRANGE", key, std::to_string(size - 1), "x"});
    ASSERT_EQ(words(made), std::to_string(size));
  }
};

TEST_F(redis_limits, a_million_elements_are_read_and_one_more_is_not) {
  // Broken: an announcement of a few bytes would exhaust our memory.
  const std::string fill = "local t = {} for i = 1, N do t[i] = 1 end return t";
  const auto with = [&](const std::string& count) {
    std::string script = fill;
    return script.replace(script.find('N'), 1, count);
  };
  const auto answer = eval(with("1000000"));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->elements.size(), 1'000'000U);
  expect_refused({"EVAL", with("1000001"), "0"}, "1000000 elements");
}

TEST_F(redis_limits, an_answer_beyond_64_mebibytes_is_refused) {
  // Broken: as above, by one long string.
  constexpr std::size_t limit = 64 * 1024 * 1024;
  const std::string frame = "$67108850\r\n\r\n";
  make_value("fits", limit - frame.size());
  make_value("larger", limit - frame.size() + 1);
  const auto answer = client.call(line, {"GET", "fits"});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text.size(), limit - frame.size());
  expect_refused({"GET", "larger"}, "too long");
}

TEST_F(redis_limits, arrays_nested_beyond_seven_are_refused) {
  // Broken: deep nesting would exhaust the stack of the code that walks through it.
  EXPECT_TRUE(eval("return {{{{{{{1}}}}}}}"));
  expect_refused({"EVAL", "return {{{{{{{{1}}}}}}}}", "0"}, "");
}

TEST_F(redis_limits, commands_around_a_refused_answer_are_unknown_and_the_rest_goes_on) {
  // Broken: what was in flight behind the refused answer would never be answered.
  make_value("large", 70'000'000);
  const auto before = client.send(line, {"ECHO", "before"});
  const auto large = client.send(line, {"GET", "large"});
  const auto behind = client.send(line, {"ECHO", "behind"});
  EXPECT_EQ(words(before.get()), "before");
  EXPECT_EQ(code(large.get()), errc::unavailable);
  EXPECT_EQ(code(behind.get()), errc::unavailable);
  EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
}

}  // namespace
}  // namespace holdfast::test

#endif
