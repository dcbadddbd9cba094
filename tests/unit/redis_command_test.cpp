// Commands as bytes, and scripts by hash.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/command.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace holdfast::test {
namespace {

using redis::command;
using redis::script;

TEST(redis_command, words_are_counted_and_carried_as_they_are) {
  // Broken: an argument could end early and the rest be taken for another command.
  EXPECT_EQ((command{"SET", "k\r\n", ""}.bytes()), "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
  EXPECT_EQ((command{"PING"}.replies()), 1U);
}

TEST(redis_command, commands_in_a_row_are_one_write_with_as_many_replies) {
  // Broken: something could come in between.
  command both{"ASKING"};
  both.then({"GET", "k"}).then({"PING"});
  EXPECT_EQ(both.bytes(),
            "*1\r\n$6\r\nASKING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(both.replies(), 3U);
  EXPECT_EQ(both.verb(), "ASKING");
}

TEST(redis_command, the_first_words_can_be_exchanged) {
  // Broken: a script sent in full would run with other keys than by its hash.
  const command by_hash{"EVALSHA", "a\r\nb", "1", "k\r\n$1\r\nx"};
  EXPECT_EQ(by_hash.with_start({"EVAL", "return 1"}).bytes(),
            (command{"EVAL", "return 1", "1", "k\r\n$1\r\nx"}).bytes());
}

TEST(redis_script, it_is_named_by_its_sha1) {
  // Broken: the server would never know it. The expected hash is the server's own, from SCRIPT
  // LOAD.
  const script one("return 1");
  EXPECT_EQ(one.hash(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  const std::array<std::string_view, 2> keys{"k1", "k2"};
  const std::array<std::string_view, 1> arguments{"a"};
  EXPECT_EQ(one.call(keys, arguments).bytes(),
            (command{"EVALSHA", one.hash(), "2", "k1", "k2", "a"}).bytes());
  EXPECT_EQ(one.in_full(one.call(keys, arguments)).bytes(),
            (command{"EVAL", "return 1", "2", "k1", "k2", "a"}).bytes());
}

}  // namespace
}  // namespace holdfast::test

#endif
