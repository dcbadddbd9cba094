// The fields of a request: big-endian, one behind the other, whatever room was expected.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/bytes.hpp"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace holdfast::test

#endif
