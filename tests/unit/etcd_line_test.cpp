// The queue of a resource in etcd, its keys' names, and what proves a lease.
#ifdef HOLDFAST_WITH_ETCD

#include "stores/etcd/doctor.hpp"
#include "stores/etcd/lease_keeper.hpp"
#include "stores/etcd/line.hpp"
#include "stores/etcd/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace holdfast::etcd {
namespace {

using namespace std::chrono_literals;

const std::string one_id(32, 'a');
const std::string other_id(32, 'b');

key_value kv(const std::string& key, std::int64_t created, const std::string& value = {}) {
  return {key, value, created, created, 1};
}

TEST(etcd_names, a_plain_name_is_what_go_calls_it_and_no_other_name_is_below_it) {
  // Broken: Go's clients look elsewhere, or a lock on "a/b" blocks one on "a".
  const server_options options;
  EXPECT_EQ(prefix_of(options, {"", "alpha"}), "alpha/");
  EXPECT_EQ(prefix_of(options, {"", "stock.42 ä"}), "stock.42 ä/");
  std::vector<std::string> prefixes;
  for (const char* name : {"a", "a/b", "a%2Fb", "a/b/c", "%", "%%shop", "%%shop/x", "/", "a/"}) {
    prefixes.push_back(prefix_of(options, {"", name}));
    prefixes.push_back(prefix_of(options, {"shop", name}));
  }
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    for (std::size_t j = 0; j < prefixes.size(); ++j) {
      EXPECT_EQ(prefixes[j].starts_with(prefixes[i]), i == j) << prefixes[i] << " " << prefixes[j];
    }
  }
}

TEST(etcd_names, every_name_has_one_text_and_back) {
  for (const auto layout : {name_layout::flat, name_layout::path}) {
    for (const char* name : {"a", "a/b", "a%2Fb", "%25", "%", "//", "ä"}) {
      EXPECT_EQ(decoded(encoded(name, layout), layout), name);
    }
    EXPECT_EQ(decoded("%%shop", layout), std::nullopt);
    EXPECT_EQ(decoded("a%2f", layout), std::nullopt);
    EXPECT_EQ(decoded("", layout), std::nullopt);
  }
  EXPECT_EQ(decoded("a/b", name_layout::flat), std::nullopt);
}

TEST(etcd_names, a_reader_reads_all_that_may_be_in_its_way_and_no_other_reader) {
  // Broken: thousands of readers read each other until their leases were lost; or one is overlooked.
  const std::string prefix = "stock/";
  const std::string own = claim_key(prefix, claim_kind::reader, one_id);
  const auto seen_by = [&](spi::mode mode, const std::string& key) {
    return std::ranges::count_if(keys_around(prefix, mode, own), [&](const key_range& each) {
      return key == each.key || (key > each.key && key < each.end);
    });
  };
  for (const std::string& key :
       {prefix + other_id, claim_key(prefix, claim_kind::writer, other_id),
        claim_key(prefix, claim_kind::permit, other_id), own,
        mode_key(prefix, claim_kind::reader, other_id),
        revoked_key(prefix, claim_kind::reader, one_id), prefix + std::string(latch_count_key)}) {
    EXPECT_EQ(seen_by(spi::mode::shared, key), 1) << key;
    EXPECT_EQ(seen_by(spi::mode::exclusive, key), 1) << key;
  }
  const std::string other = claim_key(prefix, claim_kind::reader, other_id);
  EXPECT_EQ(seen_by(spi::mode::shared, other), 0);
  EXPECT_EQ(seen_by(spi::mode::exclusive, other), 1);
  EXPECT_EQ(seen_by(spi::mode::shared, "stock0"), 0);
}

TEST(etcd_line, a_reader_that_writes_is_missed_where_its_claim_was_not_read) {
  // Broken: a reader that does not read other readers holds beside one that has upgraded.
  const std::string prefix = "stock/";
  const key_value mode = kv(mode_key(prefix, claim_kind::reader, other_id), 5, "exclusive");
  const key_value own = kv(claim_key(prefix, claim_kind::reader, one_id), 4);
  const key_value other = kv(claim_key(prefix, claim_kind::reader, other_id), 3);
  EXPECT_TRUE(line(prefix, {own, mode}).lacks_claims());
  EXPECT_FALSE(line(prefix, {own, mode, other}).lacks_claims());
  EXPECT_EQ(line(prefix, {own, mode, other}).blocker_of(1), 0U);
}

TEST(etcd_names, a_key_says_what_it_is) {
  EXPECT_EQ(parse_key("694d9a")->kind, claim_kind::lock);
  EXPECT_EQ(parse_key("write/17")->kind, claim_kind::writer);
  EXPECT_EQ(parse_key("read/17")->kind, claim_kind::reader);
  EXPECT_EQ(parse_key("permit/17")->kind, claim_kind::permit);
  EXPECT_EQ(parse_key("write/17/mode")->part, key_part::mode);
  EXPECT_EQ(parse_key("17/revoked")->part, key_part::revoked);
  EXPECT_EQ(parse_key("permit/17/owner")->part, key_part::owner);
  EXPECT_EQ(parse_key("permit/17/owner")->id, "17");
  EXPECT_EQ(parse_key("latch/count")->part, key_part::latch);
  EXPECT_FALSE(parse_key("x/y/z"));
  EXPECT_FALSE(parse_key(""));
  EXPECT_EQ(name_in("a%2Fb/17", name_layout::flat)->name, "a/b");
  EXPECT_EQ(name_in("a/b/17", name_layout::path)->name, "a/b");
  EXPECT_EQ(name_in("a/write/17", name_layout::path)->name, "a");
}

TEST(etcd_line, the_order_is_that_of_creation) {
  // Broken: a claim that came later, or whose key sorts first, is served first.
  const line order("n/", {kv("n/" + one_id, 9), kv("n/" + other_id, 7), kv("n/6a", 8)});
  ASSERT_EQ(order.claims().size(), 3U);
  EXPECT_EQ(order.claims()[0].id, other_id);
  EXPECT_EQ(order.claims()[1].id, "6a");
  EXPECT_TRUE(order.holds(0));
  EXPECT_EQ(order.blocker_of(2), 1U);
  EXPECT_TRUE(order.wanted(0));
}

TEST(etcd_line, readers_share_up_to_the_next_that_excludes) {
  const line order("n/", {kv("n/read/1", 1), kv("n/read/2", 2), kv("n/write/3", 3),
                          kv("n/read/4", 4), kv("n/5", 5)});
  EXPECT_TRUE(order.holds(0));
  EXPECT_TRUE(order.holds(1));
  EXPECT_EQ(order.blocker_of(2), 1U);
  EXPECT_EQ(order.blocker_of(3), 2U);
  EXPECT_EQ(order.blocker_of(4), 3U);
}

TEST(etcd_line, a_changed_mode_keeps_the_place) {
  // Broken: a downgraded writer goes behind the waiters, or an upgraded reader lets others in.
  const line down("n/", {kv("n/write/1", 1), kv("n/write/2", 2), kv("n/read/3", 3),
                         kv("n/write/1/mode", 4, "shared")});
  EXPECT_EQ(down.claims()[0].id, "1");
  EXPECT_EQ(down.claims()[0].mode, spi::mode::shared);
  EXPECT_EQ(down.claims()[0].fenced, 4);
  EXPECT_FALSE(down.holds(1));
  const line up("n/", {kv("n/read/1", 1), kv("n/read/3", 3), kv("n/write/1/mode", 2, "exclusive")});
  EXPECT_TRUE(up.holds(0));
  EXPECT_FALSE(up.holds(1));
}

TEST(etcd_line, a_claim_that_was_handed_on_keeps_its_place_and_is_found_by_its_owner) {
  // Broken: a token does not find its lease, or finds another's.
  spi::claim token;
  token.id.bytes[0] = 7;
  token.detached = true;
  key_value owner = kv("stock/" + one_id + "/owner", 8, owner_text(token));
  owner.modified = 9;
  key_value key = kv("stock/" + one_id, 3, with_owner("worker", token.id));
  key.modified = 9;
  const line order("stock/", {owner, kv("stock/" + other_id, 5), key});
  ASSERT_EQ(order.claims().size(), 2U);
  EXPECT_EQ(order.find_owned(owner_text(token)), 0U);
  EXPECT_EQ(order.claims()[0].created, 3);
  EXPECT_EQ(order.claims()[0].fenced, 3);
  EXPECT_EQ(order.claims()[0].handed_on, 9);
  EXPECT_EQ(order.claims()[0].claim, spi::public_id(token.id));
  EXPECT_TRUE(is_detached(order.claims()[0].owner));
  token.detached = false;
  EXPECT_EQ(order.find_owned(owner_text(token)), line::none);
}

TEST(etcd_line, permits_are_given_in_order_while_there_are_enough) {
  const auto wants = [](int permits) {
    return stores::data_of("who", {static_cast<std::uint32_t>(permits), 4});
  };
  const line order("n/", {kv("n/permit/1", 1, wants(2)), kv("n/permit/2", 2, wants(3)),
                          kv("n/permit/3", 3, wants(1))});
  EXPECT_TRUE(order.holds(0));
  EXPECT_FALSE(order.holds(1));
  EXPECT_FALSE(order.holds(2)) << "no overtaking";
  EXPECT_EQ(order.conflict(spi::mode::permit, 5, 3)->code, errc::conflict);
  EXPECT_EQ(order.conflict(spi::mode::exclusive, 1, 3)->code, errc::name_conflict);
  EXPECT_FALSE(order.conflict(spi::mode::permit, 4, 3));
}

TEST(etcd_lease_proof, a_keepalive_alone_proves_nothing) {
  // Broken: a replaced leader keeps its clients' holds valid.
  const time_point sent{1000s};
  lease_proof proof;
  EXPECT_EQ(proof.until(), time_point::min());
  proof.add({5, 5, 0, true}, sent, 10s);  // no read
  proof.add({5, 5, 6, true}, sent, 10s);  // by way of another leader
  proof.add({4, 5, 5, true}, sent, 10s);  // sent to a member with another term
  proof.add({0, 5, 5, true}, sent, 10s);  // of which nothing is known
  proof.add({5, 5, 5, false}, sent, 10s);
  proof.add({5, 5, 5, true}, sent, 0s);
  EXPECT_EQ(proof.until(), time_point::min());
  proof.add({5, 5, 5, true}, sent, 10s);
  EXPECT_EQ(proof.until(), sent + 10s) << "from when it was sent";
  proof.add({5, 5, 5, true}, sent - 1s, 10s);
  EXPECT_EQ(proof.until(), sent + 10s) << "a late answer takes nothing away";
  proof.forget();
  EXPECT_EQ(proof.until(), time_point::min());
}

TEST(etcd_health, members_say_how_the_cluster_is) {
  cluster_health health;
  status_answer fine;
  fine.version = "3.5.30";
  fine.leader = 1;
  health.add("a", fine);
  health.add("b", failure(errc::unavailable, "refused"));
  health.members(3);
  auto checks = health.checks();
  ASSERT_EQ(checks.size(), 4U);
  EXPECT_EQ(checks[0].state, spi::check::status::warn);
  EXPECT_THAT(checks[0].detail, testing::HasSubstr("refused"));
  EXPECT_EQ(checks[1].state, spi::check::status::ok);
  EXPECT_EQ(checks[2].state, spi::check::status::ok);
  fine.version = "3.4.23";
  fine.leader = 0;
  fine.errors = {"NOSPACE"};
  health.add("c", fine);
  checks = health.checks();
  EXPECT_EQ(checks[1].state, spi::check::status::warn);
  EXPECT_EQ(checks[2].state, spi::check::status::warn);
  EXPECT_EQ(checks[3].state, spi::check::status::fail);
}

}  // namespace
}  // namespace holdfast::etcd

#endif
