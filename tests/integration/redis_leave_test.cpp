// What a release leaves behind: for an unanswered attempt that may arrive late, and for the next
// claim.
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
    return redis::claim_bytes(made, {process_name(number), 1min}, redis::queueing::allowed,
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
    const std::string who = redis::leaving_bytes(claim(number), {process_name(number), 1min});
    return redis::answer_of(caller.run(caller.scripts().leave, keys, {who, remember, ""}))->kind;
  }
  [[nodiscard]] std::string tombstones() const { return server.cli({"KEYS", "*:t:*"}); }
};

TEST_F(redis_leave, a_claim_that_is_there_needs_no_tombstone_for_its_only_request) {
  // Broken: every hand-over whose message overtakes the attempt's answer would write a tombstone,
  // and every attempt would look for one.
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
  // Broken: a state would have no expiry, or contain the rest of another claim.
  constexpr long long idle = 21;
  constexpr std::size_t before_the_claim = 46;
  std::uint8_t number = 0;
  for (const char* const payload : {"a", "b", "longer", "c"}) {
    const std::string mine = bytes(++number, payload);
    EXPECT_EQ(redis::answer_of(caller.run(caller.scripts().attempt, keys, {mine}))->kind, 1);
    EXPECT_EQ(number_of("STRLEN"), static_cast<long long>(before_the_claim + mine.size()));
    EXPECT_TRUE(server.cli({"GET", place.state}).ends_with(payload));
    EXPECT_GE(number_of("PTTL"), 86'400'000 + 60'000);
    EXPECT_EQ(leave(number, ""), 1);
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
  // Broken: the next holder would trust the expiry in the state, and lose the lock with its key.
  EXPECT_EQ(attempt(1), 1);
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(leave(1, ""), 1);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(attempt(2), 1);
  EXPECT_GE(std::chrono::milliseconds(std::stoll(server.cli({"PTTL", place.state}))), 24h + 59s);
}

// A hold of 5 ms, and its end by the server's clock.
class redis_leave_after_the_end : public redis_leave {
 protected:
  void hold_until_it_ends(duration lock_delay) {
    brief.ttl = 5ms;
    brief.lock_delay = lock_delay;
    const std::string mine =
        redis::claim_bytes(brief, {process_name(1), 1min}, redis::queueing::allowed, std::nullopt);
    const redis::reply granted = caller.run(caller.scripts().attempt, keys, {mine});
    ASSERT_EQ(redis::answer_of(granted)->kind, 1);
    const auto end = redis::answer_of(granted)->at + brief.ttl;
    // Not by one of our scripts: that would remove the ended hold.
    ASSERT_TRUE(eventually([&] {
      const redis::reply time = caller.send(command{"TIME"});
      return spi::server_time(std::chrono::seconds(std::stoll(time.elements.at(0).text))) +
                 std::chrono::microseconds(std::stoll(time.elements.at(1).text)) >
             end;
    }));
  }
  spi::claim brief = claim(1);
};

TEST_F(redis_leave_after_the_end, it_is_gone_and_the_next_one_is_not_touched) {
  // Broken: an owner that is too late would be told that it had the lock until then, or end
  // another's hold.
  hold_until_it_ends(duration{0});
  EXPECT_EQ(leave(1, ""), 2);
  EXPECT_EQ(attempt(2), 1);
  EXPECT_EQ(leave(1, ""), 2);
  EXPECT_EQ(attempt(3), 0);
}

TEST_F(redis_leave_after_the_end, a_delay_counts_from_that_end) {
  // Broken: the next holder would get in while the late one may still be at work.
  hold_until_it_ends(1h);
  EXPECT_EQ(leave(1, "0"), 2);
  EXPECT_EQ(attempt(2), 0);
}

}  // namespace
}  // namespace holdfast::test
