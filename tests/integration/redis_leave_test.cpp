// What a release leaves behind: for an attempt that was not answered and may come late, and for the next.
#include "redis_scripts_harness.hpp"

namespace holdfast::test {
namespace {

class redis_leave : public testing::Test, protected one_name {
 protected:
  static spi::claim claim(std::uint8_t number) {
    spi::claim made;
    made.id.bytes[0] = number;
    made.resource = {"", "stock"};
    made.ttl = 60s;
    return made;
  }
  static std::string bytes(std::uint8_t number, const std::string& payload = "") {
    spi::claim made = claim(number);
    made.payload = payload;
    return redis::claim_bytes(made, {process_name(number), 2s}, redis::queueing::allowed,
                              std::nullopt);
  }
  // 1 granted, 0 blocked, -1 refused.
  std::int64_t attempt(std::uint8_t number) {
    return redis::answer_of(caller.run(caller.scripts().attempt, keys, {bytes(number)}))->kind;
  }
  [[nodiscard]] long long number_of(const std::string& verb) const {
    return std::stoll(server.cli({verb, place.state}));
  }
  // 0 was waiting, 1 was the holder, 2 gone.
  std::int64_t leave(std::uint8_t number, const std::string& remember) {
    const std::string who = redis::leaving_bytes(claim(number), {process_name(number), 2s});
    return redis::answer_of(caller.run(caller.scripts().leave, keys, {who, remember, ""}))->kind;
  }
  [[nodiscard]] std::string tombstones() const { return server.cli({"KEYS", "*:t:*"}); }
};

TEST_F(redis_leave, a_claim_that_is_there_needs_no_tombstone_for_its_only_request) {
  // Broken: every hand-over whose message overtakes the attempt's answer would write one, and every attempt
  // look for one.
  EXPECT_EQ(attempt(1), 1);
  EXPECT_EQ(attempt(2), 0);
  EXPECT_EQ(leave(2, "2"), 0);
  EXPECT_EQ(leave(1, "2"), 1);
  EXPECT_EQ(tombstones(), "");
  EXPECT_EQ(attempt(3), 1);
}

TEST_F(redis_leave, a_claim_that_is_not_there_must_not_come_afterwards) {
  // Broken: a late attempt would hold the lock for nobody until its ttl ends.
  EXPECT_EQ(leave(1, "2"), 2);
  EXPECT_NE(tombstones(), "");
  EXPECT_EQ(attempt(1), -1);
  EXPECT_EQ(attempt(2), 1);
  EXPECT_EQ(leave(3, "2"), 2);
  EXPECT_EQ(attempt(3), -1);
}

TEST_F(redis_leave, the_next_to_take_the_name_keeps_its_life_and_leaves_nothing_of_the_last) {
  // Broken: a state would have no end, or the rest of another claim in it.
  constexpr long long idle = 22;
  constexpr std::size_t before_the_claim = 50;
  std::uint8_t number = 0;
  for (const char* const payload : {"a", "b", "longer", "c"}) {
    const std::string mine = bytes(++number, payload);
    EXPECT_EQ(redis::answer_of(caller.run(caller.scripts().attempt, keys, {mine}))->kind, 1);
    EXPECT_EQ(number_of("STRLEN"), static_cast<long long>(before_the_claim + mine.size()));
    EXPECT_TRUE(server.cli({"GET", place.state}).ends_with(payload));
    EXPECT_GE(number_of("PTTL"), 86'400'000 + 60'000);
    EXPECT_EQ(leave(number, "0"), 1);
    EXPECT_EQ(number_of("STRLEN"), idle);
    EXPECT_GE(number_of("PTTL"), 86'400'000);
  }
}

TEST_F(redis_leave, where_several_requests_are_unanswered_there_is_always_a_tombstone) {
  // Broken: the second of them would take the lock after the release.
  EXPECT_EQ(attempt(1), 1);
  EXPECT_EQ(leave(1, "1"), 1);
  EXPECT_EQ(attempt(1), -1);
}

TEST_F(redis_leave, without_memory_does_not_shorten_the_life_of_the_state) {
  // Broken: the next holder would trust what the state says of its life, and lose the lock with its key.
  EXPECT_EQ(attempt(1), 1);
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(leave(1, "0"), 1);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(attempt(2), 1);
  EXPECT_GE(std::chrono::milliseconds(std::stoll(server.cli({"PTTL", place.state}))), 24h + 59s);
}

}  // namespace
}  // namespace holdfast::test
