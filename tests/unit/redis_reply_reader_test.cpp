// Replies from bytes: whatever the cuts, the same comes out; what is too large or wrong is refused.
#ifdef HOLDFAST_WITH_REDIS

#include "stores/redis/client/reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using redis::reader_limits;
using redis::reply;
using redis::reply_reader;
using testing::HasSubstr;

struct outcome {
  std::vector<reply> replies;
  bool sound = true;

  friend bool operator==(const outcome&, const outcome&) = default;
};

// Feeds the bytes in pieces of the given size.
outcome read(const std::string& bytes, std::size_t piece, reader_limits limits = {}) {
  reply_reader reader(limits);
  outcome got;
  for (std::size_t at = 0; at < bytes.size() && got.sound; at += piece) {
    got.sound = reader.feed(std::string_view(bytes).substr(at, piece), got.replies).has_value();
  }
  return got;
}
outcome read(const std::string& bytes, reader_limits limits = {}) {
  return read(bytes, std::max<std::size_t>(bytes.size(), 1), limits);
}

std::string encode(const reply& value) {
  const auto bulk = [](const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  };
  switch (value.kind) {
    case reply::type::nil:
      return "$-1\r\n";
    case reply::type::status:
      return "+" + value.text + "\r\n";
    case reply::type::error:
      return "-" + value.text + "\r\n";
    case reply::type::integer:
      return ":" + std::to_string(value.integer) + "\r\n";
    case reply::type::string:
      return bulk(value.text);
    case reply::type::array:
      break;
  }
  std::string bytes = "*" + std::to_string(value.elements.size()) + "\r\n";
  for (const reply& one : value.elements) bytes += encode(one);
  return bytes;
}

// Any value, of any shape within the limits.
class generator {
 public:
  explicit generator(std::uint64_t seed) : source_(seed) {}

  reply any(int depth = 0) {
    reply made;
    made.kind = static_cast<reply::type>(below(depth < 5 ? 6 : 5));
    if (made.kind == reply::type::integer) made.integer = static_cast<std::int64_t>(source_());
    if (made.kind == reply::type::string) made.text = text(true);
    if (made.kind == reply::type::status || made.kind == reply::type::error) {
      made.text = text(false);
    }
    if (made.kind == reply::type::array) {
      for (auto left = below(5); left > 0; --left) made.elements.push_back(any(depth + 1));
    }
    return made;
  }
  std::size_t below(std::size_t limit) { return source_() % limit; }

 private:
  std::string text(bool binary) {
    std::string made(below(40), '\0');
    for (char& c : made) {
      c = static_cast<char>(source_());
      if (!binary && (c == '\r' || c == '\n')) c = ' ';
    }
    return made;
  }

  std::mt19937_64 source_;
};

// A number that arrives complete bypasses the parser; byte by byte, none does.
TEST(redis_reply_reader, reads_a_number_alike_whether_it_comes_whole_or_not) {
  for (const std::string line :
       {":0", ":1", ":10", ":-1", ":-0", ":+5", ":007", ":123456789012345678",
        ":1234567890123456789", ":9223372036854775807", ":9223372036854775808", ":", ": 1", ":1a",
        ":1\r", ":1\n", ":12\r\r"}) {
    for (const std::string before : {"", ":7\r\n", "+OK\r\n", "*2\r\n:3\r\n"}) {
      const std::string bytes = before + line + "\r\n:5\r\n:";
      EXPECT_EQ(read(bytes), read(bytes, 1)) << before << line;
      EXPECT_EQ(read(bytes, {.bytes = 8}), read(bytes, 1, {.bytes = 8})) << before << line;
    }
  }
  const outcome got = read(":1794797432223182\r\n:5\r\n");
  ASSERT_EQ(got.replies.size(), 2U);
  EXPECT_EQ(got.replies[0].kind, reply::type::integer);
  EXPECT_EQ(got.replies[0].integer, 1'794'797'432'223'182);
  EXPECT_EQ(got.replies[1].integer, 5);
}

TEST(redis_reply_reader, each_kind_of_value_is_read) {
  // Broken: answers would be misread.
  const auto got =
      read("+OK\r\n-ERR no\r\n:-42\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n$0\r\n\r\n");
  ASSERT_TRUE(got.sound);
  ASSERT_EQ(got.replies.size(), 8U);
  EXPECT_EQ(got.replies[0].words(), "OK");
  EXPECT_TRUE(got.replies[1].is_error("ERR"));
  EXPECT_FALSE(got.replies[1].is_error("ER"));
  EXPECT_EQ(got.replies[2].integer, -42);
  EXPECT_EQ(got.replies[3].text, "a\r\n");
  EXPECT_TRUE(got.replies[4].is(reply::type::nil));
  EXPECT_TRUE(got.replies[5].is(reply::type::nil));
  ASSERT_EQ(got.replies[6].elements.size(), 2U);
  EXPECT_EQ(got.replies[6].elements[0].integer, 1);
  EXPECT_TRUE(got.replies[6].elements[1].is(reply::type::array));
  EXPECT_EQ(got.replies[7].text, "");
}

TEST(redis_reply_reader, cuts_make_no_difference) {
  // Broken (H26): the network's packets would change what the server said.
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    generator make(seed);
    std::string bytes;
    outcome expected;
    for (auto left = make.below(6) + 1; left > 0; --left) {
      expected.replies.push_back(make.any());
      bytes += encode(expected.replies.back());
    }
    for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7},
                                    make.below(50) + 1, bytes.size()}) {
      ASSERT_EQ(read(bytes, piece), expected) << "seed " << seed << ", pieces of " << piece;
    }
  }
}

TEST(redis_reply_reader, cuts_make_no_difference_to_damaged_bytes_either) {
  // Broken: whether nonsense is detected, and what was read before it, would depend on luck.
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    generator make(seed);
    std::string bytes = encode(make.any()) + encode(make.any()) + encode(make.any());
    for (auto left = make.below(3) + 1; left > 0; --left) {
      bytes[make.below(bytes.size())] = static_cast<char>(make.below(256));
    }
    const reader_limits small{100, 300, 64, 4};
    const outcome whole = read(bytes, small);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{5}}) {
      const outcome got = read(bytes, piece, small);
      ASSERT_EQ(got.replies, whole.replies) << "seed " << seed << ", pieces of " << piece;
      ASSERT_EQ(got.sound, whole.sound) << "seed " << seed << ", pieces of " << piece;
    }
  }
}

TEST(redis_reply_reader, what_is_not_resp_is_refused) {
  // Broken: another protocol's words would be taken for answers.
  for (const char* bytes : {"HTTP/1.1 200 OK\r\n", "$abc\r\n", "*x\r\n", ":1x\r\n", "$-2\r\n",
                            "*-2\r\n", "$3\r\nabcd\r\n", "*99999999999999999999\r\n",
                            "$99999999999999999999\r\n", "\r\n", "%1\r\n", "$3\r\nabc\n\r"}) {
    EXPECT_FALSE(read(bytes).sound) << bytes;
    EXPECT_TRUE(read(bytes).replies.empty()) << bytes;
  }
}

TEST(redis_reply_reader, an_announcement_alone_takes_no_memory) {
  // Broken: `*388888800` would exhaust it.
  std::vector<reply> into;
  reply_reader reader;
  const auto refused = reader.feed("*388888800\r\n", into);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("1000000 elements"));
  EXPECT_FALSE(reader.feed("+OK\r\n", into)) << "it stays refused";
  EXPECT_TRUE(into.empty());
}

TEST(redis_reply_reader, the_limit_of_elements_is_for_all_arrays_of_a_reply_together) {
  // Broken: arrays in arrays would multiply what one may hold.
  const reader_limits small{6, 1'000, 100, 7};
  EXPECT_TRUE(read("*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:1\r\n:1\r\n", small).sound);
  EXPECT_FALSE(read("*2\r\n*2\r\n:1\r\n:1\r\n*3\r\n:1\r\n:1\r\n:1\r\n", small).sound);
  std::string many;
  for (int i = 0; i < 10; ++i) many += "*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n";
  EXPECT_EQ(read(many, small).replies.size(), 10U) << "each reply counts for itself";
}

TEST(redis_reply_reader, the_limit_of_bytes_is_exact_and_per_reply) {
  // Broken: a limit that depends on how replies fall into packets could not be relied upon.
  const reader_limits small{100, 20, 100, 7};
  const std::string fits = "$13\r\n1234567890123\r\n";  // 20 bytes
  const std::string larger = "$14\r\n12345678901234\r\n";
  for (const std::size_t piece : {1, 6, 19, 20, 21, 1'000}) {
    EXPECT_EQ(read(fits + fits + fits, piece, small).replies.size(), 3U) << piece;
    const auto got = read(fits + larger + fits, piece, small);
    EXPECT_FALSE(got.sound) << piece;
    EXPECT_EQ(got.replies.size(), 1U) << piece;
  }
}

TEST(redis_reply_reader, a_line_without_end_is_refused) {
  // Broken: each piece would be searched from the start again, for minutes.
  const reader_limits small{100, 1'000'000, 64, 7};
  for (const char* start : {"+", "-", ":", "$", "*"}) {
    EXPECT_FALSE(read(start + std::string(200, '1'), 1, small).sound) << start;
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
