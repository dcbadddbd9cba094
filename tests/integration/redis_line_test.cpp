// A line of exclusive claims that is in the state of its lock, and the rest of it in a key beside it.
#include "redis_scripts_harness.hpp"

namespace holdfast::test {
namespace {

class redis_line : public testing::Test, protected one_name {
 protected:
  static constexpr std::uint8_t claims = 12;  // three of them find room in the state

  redis_line() { listen(claims + 1); }

  static spi::claim claim(std::uint8_t number) {
    spi::claim made;
    made.id.bytes.fill(number);
    made.resource = {"", "stock"};
    made.ttl = 60s;
    made.payload.assign(120, 'p');
    return made;
  }
  static std::string bytes(std::uint8_t number) {
    return redis::claim_bytes(claim(number), {process_name(number), 1min}, redis::queueing::allowed,
                              std::nullopt);
  }
  reply attempt(std::uint8_t number) {
    return caller.run(caller.scripts().attempt, keys, {bytes(number)});
  }
  // 1 granted, 0 blocked, -1 refused.
  std::int64_t answer(std::uint8_t number) { return redis::answer_of(attempt(number))->kind; }
  // 0 was waiting, 1 was the holder, 2 gone.
  std::int64_t leave(std::uint8_t number) {
    const std::string who = redis::leaving_bytes(claim(number), {process_name(number), 1min});
    return redis::answer_of(caller.run(caller.scripts().leave, keys, {who}))->kind;
  }
  void queue(std::uint8_t first, std::uint8_t last) {
    for (std::uint8_t number = first; number <= last; ++number) {
      EXPECT_EQ(answer(number), number == 1 ? 1 : 0);
    }
  }
  // Each that is handed the lock gives it back.
  void serve(std::uint8_t first, std::uint8_t last) {
    for (std::uint8_t number = first; number <= last; ++number) {
      SCOPED_TRACE(static_cast<int>(number));
      EXPECT_EQ(leave(number), 1);
    }
  }
  [[nodiscard]] std::string kind() const { return server.cli({"GETRANGE", place.state, "0", "3"}); }
  [[nodiscard]] std::string rest() const { return server.cli({"KEYS", "*:r:*"}); }
  [[nodiscard]] std::string others() const { return server.cli({"KEYS", "*:[wdq]:*"}); }
};

TEST_F(redis_line, is_served_in_order_and_nothing_of_it_stays) {
  // Broken: somebody would wait for ever, or be overtaken, or a key would have no end.
  queue(1, claims);
  EXPECT_EQ(kind(), "hf2l");
  EXPECT_EQ(others(), "");
  const std::string key = rest();
  ASSERT_NE(key, "");
  EXPECT_GT(std::stoll(server.cli({"PTTL", key})), 86'400'000);
  serve(1, claims);
  EXPECT_EQ(rest(), "");
  EXPECT_EQ(kind(), "hf2i");
}

TEST_F(redis_line, goes_round_for_long_without_growing) {
  // Broken: the key of the rest would grow for as long as somebody waits.
  queue(1, claims);
  for (int round = 0; round < 40; ++round) {
    for (std::uint8_t number = 1; number <= claims; ++number) {
      ASSERT_EQ(leave(number), 1) << round << " " << static_cast<int>(number);
      ASSERT_EQ(answer(number), 0);
    }
  }
  EXPECT_LT(std::stoll(server.cli({"STRLEN", rest()})), 24'000);
  EXPECT_LT(std::stoll(server.cli({"STRLEN", place.state})), 8'000);
}

TEST_F(redis_line, without_memory_is_served_but_takes_nobody_in) {
  queue(1, claims - 1);
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(attempt(claims).is_error());
  serve(1, claims - 1);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(answer(claims), 1);
}

TEST_F(redis_line, whoever_is_first_of_the_rest_and_cannot_be_reached_is_passed_over) {
  // Broken: the lock would be given to nobody, or the rest would be read as the line it became.
  queue(1, claims);
  subscriptions[5].reset();
  ASSERT_TRUE(caller.deaf(place.lane, process_name(5)));
  serve(1, 4);
  serve(6, claims);
  EXPECT_EQ(answer(5), 1);
}

TEST_F(redis_line, gives_nothing_to_a_waiter_that_counts_as_dead) {
  // Broken: whoever gave up without a word would be handed the lock, and keep the others out for an offer.
  queue(1, 2);
  caller.run(redis::script("local t = redis.call('TIME')\n"
                           "local past = struct.pack('>d', t[1] * 1000000 + t[2] - 1)\n"
                           "redis.call('SETRANGE', KEYS[1], 60, past)\n"     // none dead before
                           "redis.call('SETRANGE', KEYS[1], 308, past)\n"),  // of the second claim
             keys, {});
  EXPECT_EQ(leave(1), 1);
  EXPECT_EQ(answer(3), 1);
}

TEST_F(redis_line, whose_rest_was_lost_takes_them_in_again) {
  // Broken: a key that vanished would shut the lock.
  queue(1, claims);
  server.cli({"DEL", rest()});
  for (std::uint8_t number = claims; number >= 5; --number) EXPECT_EQ(answer(number), 0);
  serve(1, 4);
  for (std::uint8_t number = claims; number >= 5; --number) EXPECT_EQ(leave(number), 1);
}

TEST_F(redis_line, of_the_version_before_is_read) {
  // Broken: an update would need all locks to be free.
  constexpr const char* write =
      "local t = redis.call('TIME') local now, line = t[1] * 1000000 + t[2], ''\n"
      "for i = 2, #ARGV do line = line .. struct.pack('>I2ddc0', #ARGV[i] + 16, now, now + "
      "30000000, ARGV[i]) "
      "end\n"
      "local hold = struct.pack('>dddBBBBc0', now, now + 60000000, now, 0, 0, 0, 0, ARGV[1])\n"
      "redis.call('SET', KEYS[1], struct.pack('>c4ddddBI2c0I2c0c0', 'hf2w', now, now + 60000000, "
      "0, "
      "now + 30000000, #ARGV - 1, 0, '', #hold, hold, line), 'PX', 86460000)\n";
  caller.run(redis::script(write), keys, {bytes(1), bytes(2), bytes(3)});
  queue(4, claims);
  EXPECT_EQ(kind(), "hf2l");
  serve(1, claims);
}

}  // namespace
}  // namespace holdfast::test
