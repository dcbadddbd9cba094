// The queue of a name: a hash beside its state.
#include "redis_scripts_harness.hpp"

#include <thread>

namespace holdfast::test {
namespace {

class redis_line : public testing::Test, protected one_name {
 protected:
  static constexpr std::uint8_t claims = 12;

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
  redis::reply attempt(std::uint8_t number) {
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
  // Each claim that is handed the lock releases it.
  void serve(std::uint8_t first, std::uint8_t last) {
    for (std::uint8_t number = first; number <= last; ++number) {
      SCOPED_TRACE(static_cast<int>(number));
      EXPECT_EQ(leave(number), 1);
    }
  }
  [[nodiscard]] std::string line_key() const { return server.cli({"KEYS", "*:q:*"}); }
};

TEST_F(redis_line, is_served_in_order_and_nothing_of_it_stays) {
  // Broken: a claim would wait forever, or be overtaken, or a key would have no expiry.
  queue(1, claims);
  const std::string key = line_key();
  ASSERT_NE(key, "");
  EXPECT_GT(std::stoll(server.cli({"PTTL", key})), 60'000);
  serve(1, claims);
  EXPECT_EQ(line_key(), "");
}

TEST_F(redis_line, of_one_that_waits_for_nobody_but_a_lock_delay_is_kept) {
  // Broken: it would be sent to the end with each look.
  spi::claim delayed = claim(1);
  delayed.ttl = 100ms;
  delayed.lock_delay = 60s;
  const std::string words =
      redis::claim_bytes(delayed, {process_name(1), 100ms}, redis::queueing::allowed, std::nullopt);
  EXPECT_EQ(redis::answer_of(caller.run(caller.scripts().attempt, keys, {words}))->kind, 1);
  std::this_thread::sleep_for(150ms);  // its end is the server's
  EXPECT_EQ(answer(2), 0);
  EXPECT_EQ(answer(3), 0);
  EXPECT_EQ(answer(2), 0);
  EXPECT_EQ(server.cli({"HLEN", line_key()}), "4");  // a record and a number for each
  EXPECT_EQ(leave(2), 0);
  EXPECT_EQ(leave(3), 0);
  EXPECT_EQ(line_key(), "");
}

TEST_F(redis_line, goes_round_for_long_without_growing) {
  // Broken: withdrawn claims would stay there for as long as somebody waits.
  queue(1, claims);
  for (int round = 0; round < 40; ++round) {
    for (std::uint8_t number = 1; number <= claims; ++number) {
      ASSERT_EQ(leave(number), 1) << round << " " << static_cast<int>(number);
      ASSERT_EQ(answer(number), 0);
    }
  }
  EXPECT_EQ(std::stoll(server.cli({"HLEN", line_key()})), 2 * (claims - 1));
}

TEST_F(redis_line, without_memory_is_served_but_takes_nobody_in) {
  queue(1, claims - 1);
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(attempt(claims).is_error());
  serve(1, claims - 1);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(answer(claims), 1);
}

TEST_F(redis_line, an_unreachable_waiter_is_skipped_and_keeps_its_place) {
  // Broken: the lock would be given to nobody, or a claim that is passed over would have to queue
  // again.
  queue(1, claims);
  subscriptions[5].reset();
  ASSERT_TRUE(caller.deaf(place.partition, process_name(5)));
  serve(1, 4);
  serve(6, claims);
  EXPECT_EQ(answer(5), 1);
}

TEST_F(redis_line, that_was_lost_takes_them_in_again) {
  // Broken: a key that vanished would block the lock.
  queue(1, claims);
  server.cli({"DEL", line_key()});
  for (std::uint8_t number = claims; number >= 2; --number) EXPECT_EQ(answer(number), 0);
  EXPECT_EQ(leave(1), 1);
  for (std::uint8_t number = claims; number >= 2; --number) EXPECT_EQ(leave(number), 1);
}

TEST_F(redis_line, of_a_name_that_another_version_uses_is_left_alone) {
  // Broken: two would hold a lock, one by each version.
  for (const char* const kind : {"hf2x", "hf3s"}) {
    server.cli({"SET", place.state, kind});
    EXPECT_EQ(answer(1), -1) << kind;
    EXPECT_EQ(server.cli({"GET", place.state}), kind);
  }
}

}  // namespace
}  // namespace holdfast::test
