// When commands wait for each other on a connection.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/batch.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using redis::pacing;

constexpr time_point first_moment{};

struct redis_pacing : testing::Test {
  pacing all{{.many = 4, .writes = 2, .nearby = 300us}};

  void write(std::size_t commands, duration at) {
    all.queue(commands);
    EXPECT_TRUE(all.begin_write(first_moment + at));
  }
  void answer(std::size_t commands, duration at) {
    all.answer(commands);
    all.end_writes(first_moment + at);
  }
  void meet_server(duration away) {
    write(1, 0us);
    answer(1, away);
  }
};

TEST_F(redis_pacing, a_command_waits_where_many_are_under_way_to_a_server_nearby) {
  meet_server(100us);
  write(3, 200us);
  EXPECT_FALSE(all.holds_back()) << "one write alone";
  write(1, 210us);
  EXPECT_TRUE(all.holds_back());
}

TEST_F(redis_pacing, it_goes_out_when_a_write_was_answered) {
  // Broken: the server would have nothing to do while commands wait for it.
  meet_server(100us);
  write(3, 200us);
  write(3, 210us);
  answer(2, 300us);
  EXPECT_TRUE(all.holds_back()) << "not yet answered in full";
  answer(1, 310us);
  EXPECT_FALSE(all.holds_back());
}

TEST_F(redis_pacing, few_never_wait) {
  // Broken: three threads would take turns.
  meet_server(100us);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(all.holds_back());
    write(1, 200us);
  }
  EXPECT_FALSE(all.holds_back());
}

TEST_F(redis_pacing, nobody_waits_for_a_server_far_away) {
  // Broken: a command would take two network round trips instead of one.
  meet_server(301us);
  write(3, 400us);
  write(3, 400us);
  EXPECT_FALSE(all.holds_back());
}

TEST_F(redis_pacing, a_busy_server_nearby_is_not_taken_for_one_far_away) {
  meet_server(100us);
  write(3, 200us);
  answer(3, 50ms);
  write(3, 50ms);
  write(3, 50ms);
  EXPECT_TRUE(all.holds_back());
}

TEST_F(redis_pacing, a_new_link_knows_nothing_of_the_one_before) {
  // Broken: commands would wait for an answer that never comes.
  meet_server(100us);
  write(3, 200us);
  write(3, 200us);
  ASSERT_TRUE(all.holds_back());
  all.restart();
  EXPECT_FALSE(all.holds_back());
  EXPECT_EQ(all.under_way(), 0U);
  EXPECT_FALSE(all.begin_write(first_moment)) << "nothing is to be written";
  write(3, 0us);
  write(3, 0us);
  EXPECT_FALSE(all.holds_back()) << "how far away this one is has to be seen";
}

TEST_F(redis_pacing, what_was_written_is_not_written_again) {
  all.queue(1);
  EXPECT_TRUE(all.begin_write(first_moment));
  EXPECT_FALSE(all.begin_write(first_moment));
  answer(1, 1us);
  EXPECT_FALSE(all.begin_write(first_moment));
  all.queue(1);
  EXPECT_TRUE(all.begin_write(first_moment));
}

}  // namespace
}  // namespace holdfast::test

#endif
