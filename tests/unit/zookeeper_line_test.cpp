// The queue of a lock on ZooKeeper: names of nodes, their order, and who waits for whom.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/payload.hpp"
#include "stores/zookeeper/line.hpp"
#include "stores/zookeeper/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::zookeeper {
namespace {

std::string node(const std::string& rest, char who = 'a') {
  return "_c_" + std::string(8, who) + "-0000-0000-0000-000000000000-" + rest;
}

TEST(zookeeper_line, the_first_holds_and_the_others_wait_for_the_one_before) {
  // Broken: two holders, or a herd that wakes together.
  const line order({node("lock-0000000012", 'c'), node("lock-0000000002", 'a'), "lock-0000000007"});
  ASSERT_EQ(order.nodes().size(), 3U);
  EXPECT_EQ(order.blocker_of(0), line::none);
  EXPECT_EQ(order.blocker_of(1), 0U);
  EXPECT_EQ(order.blocker_of(2), 1U);
  EXPECT_EQ(order.nodes()[1].name, "lock-0000000007");
  EXPECT_TRUE(order.wanted(0));
}

TEST(zookeeper_line, a_reader_waits_for_the_last_writer_before_it) {
  // Broken: a reader is woken by every writer in turn, or is let in beside one.
  const line order({node("__READ__0000000001", 'a'), node("__WRIT__0000000002", 'b'),
                    node("__READ__0000000003", 'c'), node("__WRIT__0000000004", 'd'),
                    node("__READ__0000000005", 'e')});
  EXPECT_TRUE(order.holds(0));
  EXPECT_EQ(order.blocker_of(1), 0U);
  EXPECT_EQ(order.blocker_of(2), 1U);
  EXPECT_EQ(order.blocker_of(3), 2U);
  EXPECT_EQ(order.blocker_of(4), 3U);
  EXPECT_EQ(order.blocker_of_next(false), 3U);
  EXPECT_EQ(order.blocker_of_next(true), 4U);
}

TEST(zookeeper_line, readers_without_a_writer_hold_together) {
  // Broken: readers exclude each other, or are said to be wanted by each other.
  const line order({node("__READ__0000000001", 'a'), node("__READ__0000000002", 'b')});
  EXPECT_TRUE(order.holds(0));
  EXPECT_TRUE(order.holds(1));
  EXPECT_FALSE(order.wanted(0));
}

TEST(zookeeper_line, who_wants_to_become_the_writer_sees_everybody_that_may_hold_beside_it) {
  // Broken: a writer's node that was a reader's hides the readers around it: two writers.
  const std::string reader1 = node("__READ__0000000001", 'a');
  const std::string writer1 = node("__WRIT__0000000001", 'a');
  const std::string reader2 = node("__READ__0000000002", 'b');
  const std::string writer2 = node("__WRIT__0000000002", 'b');
  const std::string reader3 = node("__READ__0000000003", 'c');
  EXPECT_TRUE(line({reader1}).alone(0));
  EXPECT_TRUE(line({writer1}).alone(0));
  EXPECT_FALSE(line({reader1, reader2}).alone(0));
  EXPECT_FALSE(line({reader1, reader2}).alone(1));
  EXPECT_FALSE(line({writer1, reader2}).alone(0));
  EXPECT_FALSE(line({writer1, reader2}).alone(1));
  EXPECT_FALSE(line({writer1, reader2, reader3}).alone(2));
  // Who waits does not count.
  EXPECT_TRUE(line({reader1, writer2, reader3}).alone(0));
  EXPECT_TRUE(line({writer1, writer2, reader3}).alone(0));
}

TEST(zookeeper_line, a_downgraded_reader_has_the_place_of_its_writer) {
  // Broken: a writer that waits is let in beside the reader that the holder became.
  const line order({node("__READ__0000000012", 'a'), node("__WRIT__0000000012", 'a'),
                    node("__WRIT__0000000013", 'b')});
  EXPECT_EQ(order.nodes()[0].kind, claim_kind::writer);
  EXPECT_EQ(order.blocker_of(2), 1U);
}

TEST(zookeeper_line, the_counter_may_pass_its_end) {
  // Broken: after 2^31 claims the next one sorts before the holder: two holders.
  const line order(
      {node("lock--2147483648", 'b'), node("lock-2147483647", 'a'), node("lock--2147483647", 'c')});
  ASSERT_EQ(order.nodes().size(), 3U);
  EXPECT_EQ(order.nodes()[0].sequence, 2147483647);
  EXPECT_EQ(order.nodes()[2].sequence, -2147483647);
}

TEST(zookeeper_line, a_stray_child_has_no_place) {
  // Broken: a file that somebody put there blocks the lock forever.
  const line order({"0", "readme", "lock-", "lock-12x", "_c_lock-0000000001", "locks", "leases",
                    std::string(count_node), node("lock-0000000001")});
  EXPECT_EQ(order.nodes().size(), 1U);
  EXPECT_TRUE(order.has_semaphore());
  EXPECT_TRUE(order.has_latch());
}

TEST(zookeeper_line, a_claim_is_found_by_its_id) {
  // Broken: after a lost answer our own node is taken for another's.
  spi::claim_id id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i * 17);
  const std::string mine = prefix_of(node_naming::curator, id, claim_kind::lock) + sequence_text(3);
  EXPECT_EQ(mine, "_c_00112233-4455-6677-8899-aabbccddeeff-lock-0000000003");
  const line order({node("lock-0000000001"), mine});
  EXPECT_EQ(order.find(id), 1U);
  EXPECT_EQ(order.find(mine), 1U);
  EXPECT_EQ(order.find(spi::claim_id{}), line::none);
}

TEST(zookeeper_line, nodes_of_kazoo_have_their_place) {
  // Broken: what Python holds looks free to us.
  const std::string python = "00112233445566778899aabbccddeeff";
  const line order({python + "__lock__0000000002", node("lock-0000000003"),
                    python + "__rlock__0000000001", python + "__rlock__0000000004",
                    "0011__lock__0000000000", python + "__lock__", python + "__lock__7x"});
  ASSERT_EQ(order.nodes().size(), 4U);
  EXPECT_EQ(order.nodes()[0].kind, claim_kind::reader);
  EXPECT_EQ(order.blocker_of(1), 0U);
  EXPECT_EQ(order.blocker_of(2), 1U);
  EXPECT_EQ(order.blocker_of(3), 2U);
}

TEST(zookeeper_line, with_peer_kazoo_our_nodes_are_called_as_its_are) {
  // Broken: kazoo does not look at them; or after a lost answer our own node is taken for another's.
  spi::claim_id id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i * 17);
  const auto named = [&](claim_kind kind) {
    return prefix_of(node_naming::kazoo, id, kind) + sequence_text(3);
  };
  const std::string hex = "00112233445566778899aabbccddeeff";
  EXPECT_EQ(named(claim_kind::lock), hex + "__lock__0000000003");
  EXPECT_EQ(named(claim_kind::writer), hex + "__lock__0000000003");
  EXPECT_EQ(named(claim_kind::leader), hex + "__lock__0000000003");
  EXPECT_EQ(named(claim_kind::reader), hex + "__rlock__0000000003");
  for (const claim_kind kind : {claim_kind::lock, claim_kind::reader}) {
    EXPECT_TRUE(named(kind).starts_with(protection_of(node_naming::kazoo, id)));
    EXPECT_EQ(line({node("lock-0000000001"), named(kind)}).find(id), 1U);
  }
}

TEST(zookeeper_names, every_name_has_one_component_and_back) {
  // Broken: two names are one lock, or a name cannot be used or listed.
  const std::vector<std::string> names{
      "a", "a/b", ".", "..", "...", "locks",     "leases", "zookeeper", "_c_x",
      "%", "%2F", "ä", "🔒",  "a b", "_holdfast", "lock-1", "A.b-c_d"};
  std::vector<std::string> seen;
  for (const std::string& each : names) {
    const std::string component = encoded(each);
    EXPECT_THAT(component, testing::MatchesRegex("[A-Za-z0-9._%-]+"));
    EXPECT_EQ(decoded(component), each);
    EXPECT_THAT(seen, testing::Not(testing::Contains(component)));
    seen.push_back(component);
  }
  EXPECT_EQ(encoded("p42"), "p42");
  EXPECT_EQ(encoded("a/b"), "a%2Fb");
  EXPECT_EQ(encoded(".."), "%2E%2E");
  EXPECT_EQ(decoded("%2f"), std::nullopt);
  EXPECT_EQ(decoded("locks"), std::nullopt);
}

TEST(zookeeper_names, a_name_is_where_curator_has_it) {
  // Broken: holdfast and Curator lock different nodes.
  server_options options;
  options.root = "/shop";
  EXPECT_EQ(path_of(options, {"", "p42"}), "/shop/p42");
  EXPECT_EQ(path_of(options, {"eu", "p42"}), "/shop/eu/p42");
  EXPECT_EQ(path_of(options, {"", "a/b"}), "/shop/a%2Fb");
  options.layout = name_layout::path;
  EXPECT_EQ(path_of(options, {"", "a/b"}), "/shop/a/b");
  EXPECT_EQ(path_of(options, {"", "a//b"}), "/shop/a/%/b");
}

TEST(zookeeper_names, names_in_different_namespaces_never_conflict) {
  // Broken: the name team/x and the name x of the namespace team are one lock.
  server_options options;
  options.root = "/shop";
  options.layout = name_layout::path;
  EXPECT_NE(path_of(options, {"team", "x"}), path_of(options, {"", "team/x"}));
  EXPECT_NE(path_of(options, {"team", "x"}), path_of(options, {"", "_holdfast_namespaces/team/x"}));
  EXPECT_NE(path_of(options, {"team", "x"}), path_of(options, {"x", "team"}));
}

TEST(zookeeper_names, a_permit_says_of_how_many) {
  // Broken: two deployments with different limits each keep their own.
  const std::string data = stores::data_of("host:1:job", {2, 5});
  const auto terms = stores::permits_in(data);
  ASSERT_TRUE(terms.has_value());
  EXPECT_EQ(terms->permits, 2U);
  EXPECT_EQ(terms->max, 5U);
  EXPECT_EQ(stores::payload_in(data), "host:1:job");
  EXPECT_EQ(stores::payload_in("\x1b[31m\xff\xc3\xa4\x7f"), "?[31m?\xc3\xa4?");
  // A lone surrogate, and an overlong control character: not UTF-8 either.
  EXPECT_EQ(stores::payload_in("\xed\xbb\xa0 \xe0\x82\x9b"), "??? ???");
  EXPECT_EQ(stores::permits_in("127.0.0.1"), std::nullopt);
  EXPECT_EQ(stores::permits_in("x\nholdfast/1 permits=a max=2"), std::nullopt);
}

}  // namespace
}  // namespace holdfast::zookeeper
#endif
