// holdfast elect and multi run.
#include "cli/fixture.hpp"

#include <signal.h>

namespace holdfast::cli_test {
namespace {

class several : public command_line {};

TEST_F(several, all_locks_are_listed_in_the_order_given) {
  const answer got = type({"multi", "run", "b", "a", "c", "--", "sh", "-c",
                           "printf '%s|' \"$HOLDFAST_NAME\"; echo \"$HOLDFAST_FENCE\" | wc -l; "
                           "echo \"$HOLDFAST_CLAIM\" | sort -u | wc -l"});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "b\na\nc|3\n3\n");
}

TEST_F(several, one_that_is_busy_is_all_of_them_and_nothing_is_kept) {
  process holder = hold("b");
  const answer got = type({"multi", "run", "--wait", "0s", "a", "b", "c", "--", "true"});
  EXPECT_EQ(got.code, 124);
  EXPECT_NE(got.err.find("'a', 'b', 'c' are busy ("), std::string::npos) << got.err;
  const answer late = type({"multi", "run", "--wait", "200ms", "a", "b", "c", "--", "true"});
  EXPECT_EQ(late.code, 124);
  EXPECT_NE(late.err.find("'c' were not granted within 200ms ("), std::string::npos) << late.err;
  EXPECT_TRUE(is_free("a"));
  EXPECT_TRUE(is_free("c"));
  EXPECT_TRUE(waiters("b", 0));
}

TEST_F(several, opposite_orders_do_not_deadlock) {
  write_file(home_ / "counter", "0");
  std::vector<process> all;
  for (int i = 0; i < 20; ++i) {
    const bool even = i % 2 == 0;
    all.push_back(begin({"multi", "run", even ? "a" : "b", even ? "b" : "a", "--", "sh", "-c",
                         "n=$(cat counter); echo $((n + 1)) >counter"}));
  }
  for (process& one : all) EXPECT_EQ(one.end().code, 0);
  EXPECT_EQ(std::stoi(read_file(home_ / "counter")), 20);
}

TEST_F(several, the_commands_code_comes_back_from_all_of_them) {
  EXPECT_EQ(type({"multi", "run", "a", "--", "sh", "-c", "exit 6"}).code, 6);
  EXPECT_EQ(type({"elect", "a", "--", "sh", "-c", "exit 6"}).code, 6);
  EXPECT_EQ(type({"elect", "a", "--", "no-such-command"}).code, 127);
}

TEST_F(several, one_leads_and_the_next_follows_when_it_ends) {
  process leader =
      begin({"elect", "--id", "host one", "x", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(leader.says("held"));
  EXPECT_NE(type({"show", "x", "--json"}).out.find("\"payload\":\"host one\""), std::string::npos);
  process next = begin({"elect", "--id", "host two", "x", "--", "sh", "-c", "echo leading"});
  ASSERT_TRUE(waiters("x", 1));
  EXPECT_EQ(next.out(), "");
  leader.send(SIGTERM);
  EXPECT_EQ(next.end().out, "leading\n");
  EXPECT_TRUE(is_free("x"));
}

TEST_F(several, a_leader_is_known_by_host_and_process_unless_it_says_otherwise) {
  process leader = begin({"elect", "x", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(leader.says("held"));
  const std::string shown = type({"show", "x", "--json"}).out;
  EXPECT_NE(shown.find(":" + std::to_string(leader.pid()) + "\""), std::string::npos) << shown;
}

TEST_F(several, a_campaign_may_have_an_end) {
  process leader = begin({"elect", "x", "--", "sh", "-c", "echo held; exec sleep 1000"});
  ASSERT_TRUE(leader.says("held"));
  EXPECT_EQ(type({"elect", "--wait", "100ms", "x", "--", "true"}).code, 124);
}

}  // namespace
}  // namespace holdfast::cli_test
