// Readers and permits, which are kept in a key beside the state: what is left there.
#include "redis_scripts_harness.hpp"

namespace holdfast::test {
namespace {

class redis_shared_holders : public testing::Test, protected one_name {
 protected:
  void SetUp() override { listen(6); }

  static spi::claim permit(std::uint8_t number, std::uint32_t max) {
    spi::claim made;
    made.id.bytes[0] = number;
    made.resource = {"", "stock"};
    made.mode = spi::mode::permit;
    made.max = max;
    made.ttl = 60s;
    return made;
  }
  static redis::sender from(const spi::claim& one) { return {process_name(one.id.bytes[0]), 1min}; }
  redis::reply attempt(const spi::claim& one) {
    const auto bytes = redis::claim_bytes(one, from(one), redis::queueing::allowed, std::nullopt);
    return caller.run(caller.scripts().attempt, keys, {bytes});
  }
  // 1 granted, 0 blocked, -1 refused.
  std::int64_t kind_of(const redis::reply& answer) { return redis::answer_of(answer)->kind; }
  static duration recheck_of(const redis::reply& blocked) {
    const auto found = redis::outcome_of(*redis::answer_of(blocked), permit(0, 1));
    return std::get<spi::blocked>(*found).recheck_after;
  }
  // 0 was waiting, 1 was the holder, 2 gone.
  std::int64_t leave(const spi::claim& one) {
    return kind_of(
        caller.run(caller.scripts().leave, keys, {redis::leaving_bytes(one, from(one))}));
  }
  [[nodiscard]] std::string beside(char what) const {
    std::string key = place.state;
    key[redis::partition_prefix(place.partition).size()] = what;
    return key;
  }
  [[nodiscard]] long long number_of(const std::string& verb, const std::string& key) const {
    return std::stoll(server.cli({verb, key}));
  }
  bool hears(std::uint8_t who, redis::push::kind what) {
    return eventually([&] {
      return std::ranges::any_of(listeners[who]->take(),
                                 [&](const redis::push& each) { return each.what == what; });
    });
  }
};

TEST_F(redis_shared_holders, without_memory_a_hold_changes_its_mode_and_its_claim) {
  // Broken: a writer could not let readers in, and a reader could not hand its hold over, on a full server.
  for (const bool functions : {true, false}) {
    SCOPED_TRACE(functions);
    server.cli({"FLUSHALL"});
    script_caller way(server.port(), {}, functions);
    const auto bytes_of = [](std::uint8_t number) {
      spi::claim made = permit(number, 0);
      made.mode = spi::mode::exclusive;
      return redis::claim_bytes(made, from(made), redis::queueing::allowed, std::nullopt);
    };
    const auto kind = [&](const redis::script& what, const std::vector<std::string>& words) {
      const redis::reply answer = way.run(what, keys, words);
      EXPECT_FALSE(answer.is_error()) << answer.text;
      return answer.is_error() ? -1 : kind_of(answer);
    };
    EXPECT_EQ(kind(way.scripts().attempt, {bytes_of(1)}), 1);
    server.cli({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(kind(way.scripts().change, {bytes_of(1), "1"}), 1);
    EXPECT_EQ(kind(way.scripts().transfer, {bytes_of(2), bytes_of(1).substr(0, 16), "0"}), 1);
    EXPECT_EQ(kind(way.scripts().change, {bytes_of(2), "0"}), 1);
    server.cli({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(server.cli({"EXISTS", beside('h')}), "0");
  }
}

TEST_F(redis_shared_holders, keys_that_were_emptied_and_filled_again_have_an_end_of_life) {
  // Broken: what a dead process holds would stay forever once the state is gone.
  for (const bool watched : {false, true}) {
    server.cli({"FLUSHALL"});
    if (watched) server.cli({"SET", keys[1], "1"});
    EXPECT_EQ(kind_of(attempt(permit(1, 1))), 1);
    EXPECT_EQ(kind_of(attempt(permit(2, 1))), 0);
    EXPECT_EQ(leave(permit(1, 1)), 1);
    EXPECT_EQ(server.cli({"EXISTS", beside('h')}), "1");
    EXPECT_GT(number_of("PTTL", beside('h')), 60'000);
    EXPECT_EQ(leave(permit(2, 1)), 1);
    EXPECT_EQ(server.cli({"KEYS", "*:[hq]:*"}), "");
  }
}

TEST_F(redis_shared_holders, a_writer_that_becomes_a_reader_has_an_end_of_life) {
  // Broken: as above, for a reader that was a writer.
  spi::claim writer = permit(1, 0);
  writer.mode = spi::mode::exclusive;
  EXPECT_EQ(kind_of(attempt(writer)), 1);
  const auto bytes =
      redis::claim_bytes(writer, from(writer), redis::queueing::allowed, std::nullopt);
  EXPECT_EQ(kind_of(caller.run(caller.scripts().change, keys, {bytes, "1"})), 1);
  EXPECT_GT(number_of("PTTL", beside('h')), 60'000);
}

TEST_F(redis_shared_holders, a_holder_learns_of_contention_when_a_waiter_looks_again) {
  // Broken: holders of permits would never learn that somebody waits, or all at once, needlessly.
  EXPECT_EQ(kind_of(attempt(permit(1, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(2, 2))), 1);
  for (const std::uint8_t late : {std::uint8_t{3}, std::uint8_t{4}}) {
    const redis::reply answer = attempt(permit(late, 2));
    EXPECT_EQ(kind_of(answer), 0);
    EXPECT_LE(recheck_of(answer), 5ms);
  }
  attempt(permit(4, 2));
  EXPECT_TRUE(hears(1, redis::push::kind::wanted));
  EXPECT_TRUE(hears(2, redis::push::kind::wanted));
  EXPECT_GT(recheck_of(attempt(permit(3, 2))), 1s);
}

TEST_F(redis_shared_holders,
       without_memory_permits_come_back_and_are_handed_over_but_none_is_taken) {
  // Broken: a server that is out of memory would keep what its holders release.
  for (std::uint8_t number = 1; number <= 4; ++number) attempt(permit(number, 2));
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(attempt(permit(5, 2)).is_error());
  EXPECT_EQ(leave(permit(1, 2)), 1);
  EXPECT_TRUE(hears(3, redis::push::kind::granted));
  EXPECT_EQ(leave(permit(2, 2)), 1);
  EXPECT_TRUE(hears(4, redis::push::kind::granted));
  EXPECT_EQ(leave(permit(3, 2)), 1);
  EXPECT_TRUE(attempt(permit(5, 2)).is_error());
  EXPECT_EQ(leave(permit(4, 2)), 1);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(server.cli({"KEYS", "*:[hewdqt]:*"}), "");
  EXPECT_EQ(kind_of(attempt(permit(5, 2))), 1);
}

TEST_F(redis_shared_holders, an_attempt_and_a_release_that_come_twice_count_once) {
  // Broken: a lost answer would cost a permit, or release one that another holds.
  EXPECT_EQ(kind_of(attempt(permit(1, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(1, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(2, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(3, 2))), 0);
  EXPECT_EQ(kind_of(attempt(permit(3, 2))), 0);
  EXPECT_EQ(leave(permit(1, 2)), 1);  // to the third
  EXPECT_EQ(leave(permit(1, 2)), 2);
  EXPECT_EQ(kind_of(attempt(permit(4, 2))), 0);
  EXPECT_EQ(leave(permit(4, 2)), 0);
  EXPECT_EQ(leave(permit(2, 2)), 1);
  EXPECT_EQ(leave(permit(3, 2)), 1);
  EXPECT_EQ(server.cli({"KEYS", "*:[hewdqt]:*"}), "");
}

TEST_F(redis_shared_holders, a_hold_that_is_only_counted_is_not_valid) {
  // Broken: a release whose second write failed would lose a permit forever.
  const auto half_left = [&](std::uint8_t number) {
    std::string id(16, '\0');
    id[0] = static_cast<char>(number);
    caller.send(command{"HDEL", beside('h'), id});
  };
  EXPECT_EQ(kind_of(attempt(permit(1, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(2, 2))), 1);
  half_left(2);
  EXPECT_EQ(kind_of(attempt(permit(3, 2))), 1);
  EXPECT_EQ(kind_of(attempt(permit(4, 2))), 0);
  EXPECT_EQ(kind_of(attempt(permit(5, 2))), 0);
  half_left(3);
  EXPECT_EQ(leave(permit(1, 2)), 1);
  EXPECT_TRUE(hears(4, redis::push::kind::granted));
  EXPECT_TRUE(hears(5, redis::push::kind::granted));
}

}  // namespace
}  // namespace holdfast::test
