// Where names are in Redis, and what is known about the server's clock.
#include "stores/redis/layout.hpp"
#include "stores/redis/wire.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace holdfast::redis {
namespace {

using namespace std::chrono_literals;

TEST(redis_layout, different_names_have_different_keys_and_a_key_gives_its_name) {
  // Broken (H38, G9.4): two locks would be one, or `ls` show names that nobody gave.
  const std::string longest(512, 'x');
  const std::vector<spi::resource_id> all{
      {"", "p"},          {"", "p/q"},       {"p", "q"},
      {"", "P"},          {"", "%2f"},       {"", "\xc3\xa4"},
      {"", "{17}"},       {"", "a b*?[c]"},  {"", longest},
      {"", longest + ""}, {"shop", longest}, {"", std::string(511, 'x') + "y"},
      {"a.b", "c"},       {"a", "b.c"},      {"", "holdfast:{1}:s"}};
  std::set<spi::resource_id> names;
  std::set<std::string> keys;
  for (const spi::resource_id& each : all) {
    const place where = place_of(each);
    names.insert(each);
    keys.insert(where.state);
    const auto parsed = parse_state(where.state);
    ASSERT_TRUE(parsed) << where.state;
    EXPECT_EQ(parsed->partition, partition_of(each));
    EXPECT_EQ(resource_of(parsed->tail, where.written), each);
    EXPECT_LT(where.state.size(), 300U);
  }
  EXPECT_EQ(keys.size(), names.size());
}

TEST(redis_layout, a_lane_never_changes) {
  // Broken: after an update a lock would be looked for elsewhere, and held twice.
  EXPECT_EQ(place_of({"", "stock"}).state,
            "holdfast:{" + std::to_string(partition_of({"", "stock"})) + "}:s:%2fstock");
  EXPECT_EQ(partition_of({"", "a"}), 109);
  EXPECT_EQ(partition_of({"", "x"}), 172);
}

TEST(redis_layout, names_spread_over_all_partitions) {
  // Broken: one node of a cluster would carry everything, or renewals would not be batched.
  std::array<int, partition_count> count{};
  for (int i = 0; i < 25'600; ++i) ++count[partition_of({"shop", "item/" + std::to_string(i)})];
  for (const int each : count) {
    EXPECT_GT(each, 40);
    EXPECT_LT(each, 200);
  }
}

TEST(redis_layout, what_is_no_state_is_nobodys) {
  // Broken: foreign keys would be listed.
  EXPECT_FALSE(parse_state("holdfast:{1}:o"));
  EXPECT_FALSE(parse_state("holdfast:{x}:s:a"));
  EXPECT_FALSE(parse_state("other"));
  EXPECT_FALSE(resource_of("no-slash", ""));
  EXPECT_FALSE(resource_of("%2", ""));
}

time_point client_at(duration since) { return time_point(1h + since); }
spi::server_time server_at(duration since) { return spi::server_time(1000h + since); }

TEST(redis_server_times, a_live_request_is_never_too_late) {
  // Broken (H18): attempts would be refused as late although they are not.
  server_times times;
  EXPECT_FALSE(times.latest(client_at(0s)));
  times.learn(client_at(0s), client_at(10ms), server_at(4ms));
  EXPECT_GE(*times.latest(client_at(5s)), server_at(5s + 4ms));
  EXPECT_LT(*times.latest(client_at(5s)), server_at(6s));
}

TEST(redis_server_times, a_clock_that_jumps_is_noticed_and_one_that_drifts_is_not) {
  // Broken (H06, H07): leases would end early or late, and nobody could say why.
  server_times times;
  times.learn(client_at(0s), client_at(1ms), server_at(0s));
  times.learn(client_at(10s), client_at(10s + 1ms), server_at(10s + 50ms));
  EXPECT_EQ(times.jumps(), 0U);
  times.learn(client_at(20s), client_at(20s + 1ms), server_at(80s));
  EXPECT_EQ(times.jumps(), 1U);
  times.learn(client_at(21s), client_at(21s + 1ms), server_at(22s));
  EXPECT_EQ(times.jumps(), 2U);
}

}  // namespace
}  // namespace holdfast::redis
