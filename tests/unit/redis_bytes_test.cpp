// The fields of a request, or of an answer: big-endian, one after another, however much room was
// reserved.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/reply.hpp"
#include "stores/redis/wire.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>

namespace holdfast::test {
namespace {

TEST(redis_bytes, are_the_same_whatever_room_was_expected) {
  for (const std::size_t expected : {0U, 1U, 7U, 28U, 100U}) {
    redis::byte_writer to(expected);
    to.text("abc").small(1).medium(0x0203).number(0x04050607).real(-2.5).counted("four").text("");
    EXPECT_EQ(to.take(), std::string("abc\x01\x02\x03\x04\x05\x06\x07"
                                     "\xC0\x04\0\0\0\0\0\0\0\x04"
                                     "four",
                                     24))
        << expected;
  }
}

TEST(redis_bytes, of_a_blocked_attempt_are_read_and_are_no_answer_where_some_are_missing) {
  // Broken: a waiter would look again at another time than its server said, or name another blocker.
  redis::byte_writer to(32);
  redis::reply answer;
  answer.kind = redis::reply::type::string;
  answer.text = to.real(1'700'000'000'000'000).real(2'500'000).small(1).text("host:1").take();
  const auto found = redis::answer_of(answer);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, 0);
  EXPECT_EQ(found->at, redis::to_server_time(1'700'000'000'000'000));
  const auto outcome = redis::outcome_of(*found, spi::claim{});
  ASSERT_TRUE(outcome);
  const auto& blocked = std::get<spi::blocked>(*outcome);
  EXPECT_TRUE(blocked.queued);
  EXPECT_EQ(blocked.recheck_after, std::chrono::milliseconds(2'500));
  EXPECT_EQ(blocked.blocker, "host:1");

  answer.text.resize(17);
  EXPECT_EQ(std::get<spi::blocked>(*redis::outcome_of(*redis::answer_of(answer), {})).blocker, "");
  answer.text.resize(16);
  EXPECT_EQ(redis::answer_of(answer).error().code, errc::unavailable);
}

}  // namespace
}  // namespace holdfast::test

#endif
