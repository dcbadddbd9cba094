// etcd's messages: what is written is what etcd reads, and what a broken or hostile server sends is
// refused.
#ifdef HOLDFAST_WITH_ETCD

#include "stores/etcd/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace holdfast::etcd {
namespace {

using namespace std::string_literals;

std::string header_bytes(std::int64_t revision, std::uint64_t term) {
  std::string body;
  proto_writer(body).number(1, 7).number(2, 9).signed_number(3, revision).number(4, term);
  return body;
}

std::string kv_bytes(const std::string& key, const std::string& value, std::int64_t created) {
  std::string body;
  proto_writer(body).bytes(1, key).signed_number(2, created).signed_number(3, created + 1);
  proto_writer(body).number(4, 2).bytes(5, value).signed_number(6, 0x694d);
  return body;
}

TEST(etcd_messages, a_range_is_what_etcd_reads) {
  // Broken: a field has another number, and the server does something else.
  range_options how;
  how.limit = 2;
  how.newest_first = true;
  EXPECT_EQ(range_body({"a/", "a0"}, how),
            "\x0a\x02"
            "a/\x12\x02"
            "a0\x18\x02\x28\x02\x30\x02"s);
  how.created_until = 5;
  EXPECT_EQ(range_body({"a/", "a0"}, how),
            "\x0a\x02"
            "a/\x12\x02"
            "a0\x18\x02\x28\x02\x30\x02\x68\x05"s);
  EXPECT_EQ(put_body("k", "v", 300), "\x0a\x01k\x12\x01v\x18\xac\x02"s);
  EXPECT_EQ(delete_body({"k"}), "\x0a\x01k"s);
}

TEST(etcd_messages, a_condition_on_an_absent_key_is_written_out) {
  // Broken: the member of a oneof is left out because it is zero, and the server compares nothing.
  txn_writer step;
  step.created({"k"}, txn_writer::relation::equal, 0)
      .then_put(put_body("k", "", 0))
      .else_range(range_body({"k"}));
  const call made = std::move(step).made();
  EXPECT_EQ(made.body,
            "\x0a\x07\x10\x01\x1a\x01k\x28\x00"
            "\x12\x05\x12\x03\x0a\x01k"
            "\x1a\x05\x0a\x03\x0a\x01k"s);
}

TEST(etcd_messages, a_prefix_ends_before_the_next_key) {
  // Broken: a name's range of keys includes its neighbour's.
  EXPECT_EQ(keys_with("a/").end, "a0");
  EXPECT_EQ(keys_with("a\xff").end, "b");
  EXPECT_EQ(keys_with("").key, std::string(1, '\0'));
  EXPECT_EQ(keys_with("").end, std::string(1, '\0'));
}

TEST(etcd_messages, a_range_is_read) {
  std::string body;
  proto_writer(body).message(1, header_bytes(41, 3)).message(2, kv_bytes("a/1", "who", 40));
  proto_writer(body).number(4, 12).flag(3, true).number(99, 5).bytes(98, "unknown");
  const auto answer = read_range(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.revision, 41);
  EXPECT_EQ(answer->header.term, 3U);
  EXPECT_EQ(answer->count, 12);
  EXPECT_TRUE(answer->more);
  ASSERT_EQ(answer->kvs.size(), 1U);
  EXPECT_EQ(answer->kvs[0].key, "a/1");
  EXPECT_EQ(answer->kvs[0].value, "who");
  EXPECT_EQ(answer->kvs[0].created, 40);
  EXPECT_EQ(answer->kvs[0].modified, 41);
  EXPECT_EQ(answer->kvs[0].lease, 0x694d);
}

TEST(etcd_messages, a_transaction_is_read) {
  std::string range;
  proto_writer(range).message(2, kv_bytes("a/1", "", 40)).number(4, 1);
  std::string deleted;
  proto_writer(deleted).number(2, 3);
  std::string first;
  proto_writer(first).message(1, range);
  std::string second;
  proto_writer(second).message(3, deleted);
  std::string body;
  proto_writer(body).message(1, header_bytes(8, 2)).flag(2, true).message(3, first);
  proto_writer(body).message(3, second);
  const auto answer = read_txn(body);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->succeeded);
  ASSERT_EQ(answer->parts.size(), 2U);
  EXPECT_EQ(answer->parts[0].range.kvs.at(0).key, "a/1");
  EXPECT_EQ(answer->parts[1].deleted, 3);
}

TEST(etcd_messages, a_deletion_is_read) {
  std::string body;
  proto_writer(body).message(1, header_bytes(8, 2)).number(2, 3);
  const auto answer = read_deletion(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header.revision, 8);
  EXPECT_EQ(answer->deleted, 3);
  EXPECT_FALSE(read_deletion(""));
}

TEST(etcd_messages, an_event_and_the_end_of_a_watch_are_read) {
  std::string event;
  proto_writer(event).number(1, 1).message(2, kv_bytes("a/1", "", 40));
  std::string body;
  proto_writer(body).message(1, header_bytes(8, 2)).signed_number(2, 5).message(11, event);
  const auto answer = read_watch(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, 5);
  ASSERT_EQ(answer->events.size(), 1U);
  EXPECT_TRUE(answer->events[0].deleted);
  std::string end;
  proto_writer(end).signed_number(2, 5).flag(4, true).number(5, 77).bytes(6, "compacted");
  const auto over = read_watch(end);
  ASSERT_TRUE(over);
  EXPECT_TRUE(over->cancelled);
  EXPECT_EQ(over->compacted, 77);
}

TEST(etcd_messages, a_negative_number_survives) {
  // Broken: a lease that is gone (-1) looks alive.
  std::string body;
  proto_writer(body).signed_number(2, std::numeric_limits<std::int64_t>::min());
  proto_writer(body).signed_number(3, -1);
  const auto answer = read_lease(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->id, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(answer->seconds, -1);
}

TEST(etcd_messages, what_is_no_message_is_refused) {
  // Broken: a length from outside is trusted.
  for (const std::string& bad :
       {"\x0a"s, "\x0a\x05"s, "\x0a\xff\xff\xff\xff\x0f"s,
        "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,
        "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "\x03"s, "\x0b"s, "\x07\x01"s, "\x08"s,
        "\x09\x01"s, "\x15\x01"s, "\x00\x01"s, "\x12\x02\x0a\x7f"s}) {
    EXPECT_FALSE(read_range(bad)) << testing::PrintToString(bad);
  }
  EXPECT_FALSE(read_txn("\x1a\x03\x0a\x01\x0a"));
  EXPECT_FALSE(read_watch("\x5a\x03\x12\x01\x0a"));
  EXPECT_FALSE(read_lease("\x10"));
  EXPECT_FALSE(read_header("\x08\x01"));
  EXPECT_FALSE(read_header(""));
}

TEST(etcd_messages, random_bytes_are_read_or_refused) {
  // Broken: some bytes crash the reader.
  std::mt19937 random(1);
  std::string body;
  proto_writer(body).message(1, header_bytes(41, 3)).message(2, kv_bytes("a/1", "who", 40));
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = body;
    for (int change = 0; change < 3; ++change) {
      bad[random() % bad.size()] = static_cast<char>(random());
    }
    bad.resize(random() % (bad.size() + 1));
    static_cast<void>(read_range(bad));
    static_cast<void>(read_txn(bad));
    static_cast<void>(read_watch(bad));
    static_cast<void>(read_status(bad));
    static_cast<void>(read_member_count(bad));
    static_cast<void>(read_deletion(bad));
    static_cast<void>(read_header(bad));
  }
}

}  // namespace
}  // namespace holdfast::etcd

#endif
