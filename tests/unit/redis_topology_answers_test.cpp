// What sentinels and cluster nodes say about each server's place, read from their replies.
#include "stores/redis/topology/cluster_topology.hpp"
#include "stores/redis/topology/sentinel_topology.hpp"

#include <gtest/gtest.h>

namespace holdfast::redis {
namespace {

reply text(std::string words) {
  reply made;
  made.kind = reply::type::string;
  made.text = std::move(words);
  return made;
}

reply number(std::int64_t value) {
  reply made;
  made.kind = reply::type::integer;
  made.integer = value;
  return made;
}

reply list(std::vector<reply> elements) {
  reply made;
  made.kind = reply::type::array;
  made.elements = std::move(elements);
  return made;
}

reply refusal(std::string words) {
  reply made = text(std::move(words));
  made.kind = reply::type::error;
  return made;
}

TEST(sentinel_answer, has_the_address_and_the_epoch) {
  // Broken: nobody finds the master; or an older configuration cannot be told from a newer one.
  const sentinel_answer found =
      read_sentinel(list({list({text("10.0.0.1"), text("6380")}),
                          list({text("name"), text("stock"), text("config-epoch"), text("7")})}));
  ASSERT_EQ(found.what, sentinel_answer::kind::found);
  EXPECT_EQ(found.master.text(), "10.0.0.1:6380");
  EXPECT_EQ(found.epoch, 7);
}

TEST(sentinel_answer, an_unknown_name_is_distinguished_from_trouble) {
  // Broken: a typing error in the URL looks like an outage, or the reverse.
  EXPECT_EQ(read_sentinel(list({reply{}, refusal("ERR No such master with that name")})).what,
            sentinel_answer::kind::no_such_name);
  EXPECT_EQ(read_sentinel(list({refusal("NOAUTH"), refusal("NOAUTH")})).what,
            sentinel_answer::kind::refused);
  EXPECT_EQ(read_sentinel(list({list({text("h"), text("0")}), list({})})).what,
            sentinel_answer::kind::refused);
  EXPECT_EQ(read_sentinel(reply{}).what, sentinel_answer::kind::refused);
}

TEST(sentinel_answer, an_announcement_is_of_one_master) {
  // Broken: the failover of another master, whose name has the same beginning, counts as ours.
  EXPECT_TRUE(switches("stock 127.0.0.1 1 127.0.0.1 2", "stock"));
  EXPECT_FALSE(switches("stock2 127.0.0.1 1 127.0.0.1 2", "stock"));
  EXPECT_FALSE(switches("stock", "stock"));
}

TEST(cluster_map, slots_are_those_of_the_reference) {
  // Broken (H52): every command takes a detour.
  EXPECT_EQ(slot_of("123456789"), 0x31c3 % 16'384);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(cluster_map, every_lane_has_the_master_of_its_slot) {
  // Broken: partitions are sent to replicas, or to nobody.
  const reply slots =
      list({list({number(0), number(8'000), list({text("10.0.0.1"), number(6379), text("id")}),
                  list({text("10.0.0.9"), number(6379), text("id")})}),
            list({number(8'001), number(16'383), list({text(""), number(6380), text("id")})})});
  const auto map =
      read_cluster(list({text("cluster_current_epoch:12\r\nx:1\r\n"), slots}), "asked");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->epoch, 12);
  for (std::size_t i = 0; i < partition_count; ++i) {
    const bool low = slot_of_partition(static_cast<partition>(i)) <= 8'000;
    ASSERT_TRUE(map->masters[i]);
    EXPECT_EQ(map->masters[i]->text(), low ? "10.0.0.1:6379" : "asked:6380");
  }
}

TEST(cluster_map, a_strange_answer_is_no_map) {
  // Broken: a hostile or half-made cluster crashes the client.
  EXPECT_FALSE(read_cluster(reply{}, "a"));
  EXPECT_FALSE(read_cluster(list({text(""), refusal("ERR cluster support disabled")}), "a"));
  EXPECT_FALSE(read_cluster(list({text(""), list({})}), "a"));
  EXPECT_FALSE(read_cluster(list({text(""), list({list({number(0)})})}), "a"));
}

TEST(cluster_map, redirections_are_read) {
  // Broken (H51): a slot that moved is not followed.
  EXPECT_EQ(redirection("MOVED 3999 127.0.0.1:6381", "a")->text(), "127.0.0.1:6381");
  EXPECT_EQ(redirection("ASK 3999 ::1:6381", "a")->text(), "[::1]:6381");
  EXPECT_EQ(redirection("MOVED 3999 :6381", "asked")->text(), "asked:6381");
  EXPECT_FALSE(redirection("MOVED 3999", "a"));
  EXPECT_FALSE(redirection("MOVED 3999 host:99999", "a"));
  EXPECT_FALSE(redirection("MOVED 3999 host:0", "a"));
}

}  // namespace
}  // namespace holdfast::redis
