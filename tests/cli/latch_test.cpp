// holdfast latch.
#include "cli/fixture.hpp"

#include <signal.h>

namespace holdfast::cli_test {
namespace {

class latches : public command_line {};

TEST_F(latches, count_down_to_zero_and_open) {
  EXPECT_EQ(type({"latch", "l", "count"}).out, "unset\n");
  EXPECT_EQ(type({"latch", "l", "set", "3"}).code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "3\n");
  EXPECT_EQ(type({"latch", "l", "down"}).code, 0);
  process waiter = begin({"latch", "l", "wait"});
  const answer tried = type({"latch", "l", "wait", "--wait", "0s"});
  EXPECT_EQ(tried.code, 124);
  EXPECT_NE(tried.err.find("the latch 'l' is not at zero ("), std::string::npos) << tried.err;
  EXPECT_EQ(type({"latch", "l", "down", "2"}).code, 0);
  EXPECT_EQ(waiter.end().code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "0\n");
  EXPECT_EQ(type({"latch", "l", "wait"}).code, 0);
}

TEST_F(latches, may_be_waited_for_before_they_are_set) {
  process waiter = begin({"latch", "l", "wait"});
  ASSERT_EQ(type({"latch", "l", "set", "1"}).code, 0);
  ASSERT_EQ(type({"latch", "l", "down"}).code, 0);
  EXPECT_EQ(waiter.end().code, 0);
}

TEST_F(latches, the_two_noes_are_1) {
  const answer unset = type({"latch", "l", "down"});
  EXPECT_EQ(unset.code, 1);
  EXPECT_EQ(lines(unset.err), 1);
  ASSERT_EQ(type({"latch", "l", "set", "2"}).code, 0);
  const answer live = type({"latch", "l", "set", "2"});
  EXPECT_EQ(live.code, 1);
  EXPECT_EQ(lines(live.err), 1);
}

TEST_F(latches, at_zero_may_be_set_again) {
  ASSERT_EQ(type({"latch", "l", "set", "1"}).code, 0);
  ASSERT_EQ(type({"latch", "l", "down", "5"}).code, 0);  // never below zero
  EXPECT_EQ(type({"latch", "l", "count"}).out, "0\n");
  EXPECT_EQ(type({"latch", "l", "set", "1000000"}).code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "1000000\n");
}

TEST_F(latches, an_id_counts_once) {
  ASSERT_EQ(type({"latch", "l", "set", "3"}).code, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(type({"latch", "l", "down", "--id", "host-1"}).code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "2\n");
  EXPECT_EQ(type({"latch", "l", "down", "--id", "host-2"}).code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "1\n");
}

TEST_F(latches, a_wait_ends_with_its_limit_or_with_a_signal) {
  ASSERT_EQ(type({"latch", "l", "set", "1"}).code, 0);
  const answer late = type({"latch", "l", "wait", "--wait", "100ms"});
  EXPECT_EQ(late.code, 124);
  EXPECT_EQ(lines(late.err), 1);
  for (const int number : {SIGINT, SIGTERM}) {
    process waiter = begin({"--log-level", "debug", "latch", "l", "wait"});
    // Its wait is not visible to others: signalled as soon as it can receive a signal.
    waiter.send(number);
    const answer got = waiter.end();
    // Before it has set up its signals it dies of this one, like any program.
    EXPECT_TRUE(got.code == 128 + number || got.signal == number) << got.code;
  }
}

TEST_F(latches, are_no_locks) {
  ASSERT_EQ(type({"latch", "l", "set", "1"}).code, 0);
  EXPECT_EQ(type({"run", "--wait", "0s", "l", "--", "true"}).code, 122);
  process holder = hold("x");
  EXPECT_EQ(type({"latch", "x", "set", "1"}).code, 122);
}

TEST_F(latches, fifty_at_once_count_exactly) {
  ASSERT_EQ(type({"latch", "l", "set", "50"}).code, 0);
  process waiter = begin({"latch", "l", "wait"});
  std::vector<process> all;
  for (int i = 0; i < 50; ++i) all.push_back(begin({"latch", "l", "down"}));
  for (process& one : all) EXPECT_EQ(one.end().code, 0);
  EXPECT_EQ(waiter.end().code, 0);
  EXPECT_EQ(type({"latch", "l", "count"}).out, "0\n");
}

}  // namespace
}  // namespace holdfast::cli_test
