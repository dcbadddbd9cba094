// Each script with its n-th call to the server failing, for n = 1, 2, ... until none fails: what is
// stored is then as before the verb or as after it, and the verb can be repeated.
#include "redis_scripts_harness.hpp"
#include "stores/redis/layout.hpp"

#include <set>

namespace holdfast::test {

namespace {

struct seen {
  std::vector<std::string> holders;  // public ids
  std::vector<std::string> waiters;

  friend bool operator==(const seen&, const seen&) = default;
};

struct trouble {
  const char* how;
  bool as_function;  // or as a script
};

class redis_nth_call : public testing::TestWithParam<trouble>, protected one_name {
 protected:
  // The number of a claim whose process has no subscription; those with lower numbers do.
  static constexpr std::uint8_t deaf = 8;

  int met = 0;  // failures

  void SetUp() override { listen(deaf); }

  // The lock is handed to it however briefly it has waited.
  static spi::claim fair(std::uint8_t number) {
    spi::claim made = claim(number);
    made.fair = true;
    return made;
  }
  static spi::claim claim(std::uint8_t number, spi::mode mode = spi::mode::exclusive) {
    spi::claim made;
    made.id.bytes[0] = number;
    made.resource = {"", "stock"};
    made.mode = mode;
    made.ttl = 60s;
    if (mode == spi::mode::permit) made.max = 2;
    return made;
  }
  // The first holds, the others wait.
  static std::vector<spi::claim> claims(std::uint8_t size) {
    std::vector<spi::claim> made;
    for (std::uint8_t number = 1; number <= size; ++number) made.push_back(claim(number));
    return made;
  }
  [[nodiscard]] static std::string bytes(const spi::claim& from) {
    return redis::claim_bytes(from, {process_name(from.id.bytes[0]), 1min},
                              redis::queueing::allowed, std::nullopt);
  }
  redis::reply attempt(const spi::claim& what) {
    return caller.run(caller.scripts().attempt, keys, {bytes(what), ""});
  }
  [[nodiscard]] static std::string leaving(const spi::claim& from) {
    return redis::leaving_bytes(from, {process_name(from.id.bytes[0]), 1min});
  }
  redis::reply leave(const spi::claim& what) {
    return caller.run(caller.scripts().leave, keys, {leaving(what)});
  }
  seen look() {
    const redis::reply raw = caller.run(caller.scripts().inspect, keys, {});
    seen found;
    const auto at = redis::answer_of(raw)->at;
    for (const redis::reply& each : raw.elements.at(2).elements) {
      found.holders.push_back(redis::holder_of(each.words(), at)->shown.claim);
    }
    for (const redis::reply& each : raw.elements.at(3).elements) {
      found.waiters.push_back(redis::waiter_of(each.words(), at)->claim);
    }
    std::ranges::sort(found.holders);
    return found;
  }

  // Runs the verb with every failure in turn, each time after all of `prepare` were attempted and
  // those of `left` have left again.
  void sweep(const std::vector<spi::claim>& prepare, const redis::script& what,
             const std::vector<std::string>& arguments, const std::vector<spi::claim>& left = {}) {
    const auto fresh = [&] {
      caller.send(command{"FLUSHALL"});
      for (const spi::claim& each : prepare) attempt(each);
      for (const spi::claim& each : left) leave(each);
    };
    fresh();
    const seen before = look();
    caller.run(what, keys, arguments);
    const seen after = look();
    constexpr std::size_t calls_at_most = 100;
    for (std::size_t nth = 1; nth <= calls_at_most; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      fresh();
      redis::reply broken =
          caller.run(failing(what, nth, GetParam().how, GetParam().as_function), keys, arguments);
      // Of several claims each has its own error.
      if (!broken.elements.empty() && broken.elements.back().is_error()) {
        broken = redis::reply(broken.elements.back());
      }
      if (!broken.is_error()) {
        // Succeeded: no failure was met, or it did not matter.
        EXPECT_EQ(look(), after);
      } else {
        ++met;
        EXPECT_NE(broken.text.find("injected"), std::string::npos) << broken.text;
        check(look(), before, after);
        // Once more, without a failure.
        const redis::reply repaired = caller.run(what, keys, arguments);
        EXPECT_FALSE(repaired.is_error()) << repaired.text;
        EXPECT_EQ(look().holders, after.holders);
      }
      // All can leave, and nothing is left.
      for (std::uint8_t number = 0; number <= deaf; ++number) leave(claim(number));
      EXPECT_EQ(look(), seen{});
      if (none_failed(broken)) return;
    }
    FAIL() << "a script with more than 100 calls";
  }

  // No claim is there twice, none that is there before and after has vanished, and none appeared
  // from nowhere.
  static void check(const seen& now, const seen& before, const seen& after) {
    const auto all = [](const seen& from) {
      std::multiset<std::string> ids(from.holders.begin(), from.holders.end());
      ids.insert(from.waiters.begin(), from.waiters.end());
      return ids;
    };
    const auto there = all(now);
    for (const std::string& id : there) {
      EXPECT_EQ(there.count(id), 1U) << "twice";
      EXPECT_TRUE(all(before).contains(id) || all(after).contains(id));
    }
    EXPECT_TRUE(now.holders == before.holders || now.holders == after.holders);
  }
};

INSTANTIATE_TEST_SUITE_P(with, redis_nth_call,
                         testing::Values(trouble{"OOM", false}, trouble{"NOPERM", false},
                                         trouble{"WRONGTYPE", false}, trouble{"OOM", true},
                                         trouble{"NOPERM", true}, trouble{"WRONGTYPE", true}),
                         [](const auto& one) {
                           return std::string(one.param.how) +
                                  (one.param.as_function ? "_function" : "_script");
                         });

TEST_P(redis_nth_call, of_an_attempt_that_takes) {
  sweep({}, caller.scripts().attempt, {bytes(claim(1)), ""});
  EXPECT_GT(met, 1);
  met = 0;
  sweep({claim(1)}, caller.scripts().attempt, {bytes(claim(2)), ""}, {claim(1)});  // used before
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_an_attempt_that_queues) {
  sweep(claims(2), caller.scripts().attempt, {bytes(claim(3)), ""});
  EXPECT_GT(met, 2);
  met = 0;
  sweep(claims(6), caller.scripts().attempt, {bytes(claim(7)), ""});
  EXPECT_GT(met, 2);
  met = 0;
  sweep(claims(2), caller.scripts().attempt, {bytes(claim(3, spi::mode::shared)), ""});
  EXPECT_GT(met, 2);
}

TEST_P(redis_nth_call, of_an_attempt_that_is_the_first_to_queue) {
  sweep({claim(1)}, caller.scripts().attempt, {bytes(claim(2)), ""});
  EXPECT_GT(met, 2);
}

TEST_P(redis_nth_call, of_an_attempt_by_one_in_line) {
  sweep(claims(2), caller.scripts().attempt, {bytes(claim(2)), ""});
  EXPECT_GT(met, 1);
  met = 0;
  sweep(claims(6), caller.scripts().attempt, {bytes(claim(3)), ""});
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_an_attempt_by_one_whose_turn_it_is) {
  sweep({claim(1), claim(deaf)}, caller.scripts().attempt, {bytes(claim(deaf)), ""}, {claim(1)});
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_a_reader_or_a_permit_that_comes_first) {
  for (const auto mode : {spi::mode::shared, spi::mode::permit}) {
    met = 0;
    sweep({}, caller.scripts().attempt, {bytes(claim(1, mode)), ""});
    EXPECT_GT(met, 3);
    met = 0;
    sweep({claim(1)}, caller.scripts().attempt, {bytes(claim(2, mode)), ""}, {claim(1)});
    EXPECT_GT(met, 3);
  }
}

TEST_P(redis_nth_call, of_a_reader_that_joins_readers) {
  const auto mode = spi::mode::shared;
  sweep({claim(1, mode), claim(2, mode)}, caller.scripts().attempt, {bytes(claim(3, mode)), ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_permit_that_is_taken_beside_another) {
  const auto mode = spi::mode::permit;
  sweep({claim(1, mode)}, caller.scripts().attempt, {bytes(claim(2, mode)), ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_an_attempt_that_queues_for_a_permit) {
  const auto mode = spi::mode::permit;
  const std::vector<spi::claim> full{claim(1, mode), claim(2, mode)};
  sweep(full, caller.scripts().attempt, {bytes(claim(3, mode)), ""});
  EXPECT_GT(met, 6);
  met = 0;
  std::vector<spi::claim> all = full;
  all.push_back(claim(3, mode));
  sweep(all, caller.scripts().attempt, {bytes(claim(4, mode)), ""});
  EXPECT_GT(met, 6);
  met = 0;
  all.push_back(claim(3, mode));  // it looks again, and notifies the others that it waits
  sweep(all, caller.scripts().attempt, {bytes(claim(3, mode)), ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_an_attempt_that_queues_behind_readers) {
  const auto mode = spi::mode::shared;
  const std::vector<spi::claim> readers{claim(1, mode), claim(2, mode)};
  sweep(readers, caller.scripts().attempt, {bytes(claim(3)), ""});
  EXPECT_GT(met, 6);
  std::vector<spi::claim> all = readers;
  all.push_back(claim(3));
  for (const auto requested : {mode, spi::mode::exclusive}) {
    met = 0;
    sweep(all, caller.scripts().attempt, {bytes(claim(4, requested)), ""});
    EXPECT_GT(met, 6);
  }
}

TEST_P(redis_nth_call, of_a_release_that_nobody_waits_for) {
  sweep({claim(1)}, caller.scripts().leave, {leaving(claim(1))});
  EXPECT_GT(met, 0);
  met = 0;
  sweep({claim(1)}, caller.scripts().leave, {leaving(claim(1)), "0", ""});
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_a_release_that_hands_over) {
  sweep(claims(3), caller.scripts().leave, {leaving(claim(1))});
  EXPECT_GT(met, 2);
  met = 0;
  sweep(claims(7), caller.scripts().leave, {leaving(claim(1))});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_release_that_passes_over_a_deaf_waiter) {
  // Broken: a granted claim would stay in the queue, and be offered the lock again after its
  // release.
  for (const auto mode : {spi::mode::exclusive, spi::mode::shared}) {
    met = 0;
    sweep({claim(1), claim(deaf), claim(2, mode), claim(3)}, caller.scripts().leave,
          {leaving(claim(1))});
    EXPECT_GT(met, 2);
  }
}

TEST_P(redis_nth_call, of_a_waiter_that_gives_up) {
  sweep(claims(7), caller.scripts().leave, {leaving(claim(6)), "1", ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_release_that_hands_over_to_the_only_waiter) {
  sweep({claim(1), fair(2)}, caller.scripts().leave, {leaving(claim(1))});
  EXPECT_GT(met, 2);
}

TEST_P(redis_nth_call, of_a_release_that_must_not_come_back) {
  sweep({claim(1)}, caller.scripts().leave, {leaving(claim(1)), "1", ""});
  sweep({claim(1), fair(2)}, caller.scripts().leave, {leaving(claim(1)), "1", ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_release_that_lets_readers_in) {
  const auto mode = spi::mode::shared;
  sweep({claim(1), claim(2, mode), claim(3, mode), claim(4)}, caller.scripts().leave,
        {leaving(claim(1)), "1", ""});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_reader_that_leaves) {
  const auto mode = spi::mode::shared;
  const std::vector<spi::claim> readers{claim(1, mode), claim(2, mode)};
  const std::string one = leaving(claim(1, mode));
  for (const char* const remember : {"0", "1"}) {
    for (const auto& before : {readers, {claim(1, mode)}}) {
      std::vector<spi::claim> all = before;
      for (std::uint8_t next = 3; next <= 5; ++next) {  // nobody waits, one writer, two
        met = 0;
        sweep(all, caller.scripts().leave, {one, remember, ""});
        EXPECT_GT(met, 3);
        all.push_back(claim(next));
      }
    }
  }
}

TEST_P(redis_nth_call, of_a_permit_that_comes_back) {
  const auto mode = spi::mode::permit;
  const std::string one = leaving(claim(1, mode));
  for (const char* const remember : {"0", "1"}) {
    std::vector<spi::claim> all{claim(1, mode)};
    for (std::uint8_t next = 2; next <= 5; ++next) {  // the last, one of two, others in the queue
      met = 0;
      sweep(all, caller.scripts().leave, {one, remember, ""});
      EXPECT_GT(met, 3);
      all.push_back(claim(next, mode));
    }
  }
}

TEST_P(redis_nth_call, of_a_downgrade) {
  sweep({claim(1), claim(2, spi::mode::shared), claim(3)}, caller.scripts().change,
        {bytes(claim(1)), "1"});
  EXPECT_GT(met, 3);
  met = 0;
  sweep(claims(3), caller.scripts().change, {bytes(claim(1)), "1"});
  EXPECT_GT(met, 6);
}

TEST_P(redis_nth_call, of_an_upgrade) {
  sweep({claim(1, spi::mode::shared), claim(2)}, caller.scripts().change,
        {bytes(claim(1, spi::mode::shared)), "0"});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_transfer) {
  // Broken: a hold would belong to nobody, or to both.
  for (const auto mode : {spi::mode::exclusive, spi::mode::shared, spi::mode::permit}) {
    const spi::claim from = claim(1, mode);
    const std::string id(reinterpret_cast<const char*>(from.id.bytes.data()), from.id.bytes.size());
    for (const char* const remember : {"0", "1"}) {
      for (const auto& all :
           {std::vector{from}, {from, claim(3, mode)}, {from, claim(4, mode), claim(5, mode)}}) {
        met = 0;
        sweep(all, caller.scripts().transfer, {bytes(claim(2, mode)), id, remember});
        EXPECT_GT(met, 2);
      }
    }
  }
}

TEST_P(redis_nth_call, of_a_renewal_by_the_holder) {
  sweep({claim(1), claim(2)}, caller.scripts().renew, {bytes(claim(1))});
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_a_renewal_by_a_reader_among_readers) {
  const auto mode = spi::mode::shared;
  sweep({claim(1, mode), claim(2, mode), claim(3)}, caller.scripts().renew,
        {bytes(claim(1, mode))});
  EXPECT_GT(met, 1);
}

TEST_P(redis_nth_call, of_a_renewal_by_one_in_line) {
  sweep({claim(1), claim(2), claim(3)}, caller.scripts().renew, {bytes(claim(3))});
  EXPECT_GT(met, 1);
  met = 0;
  sweep(claims(7), caller.scripts().renew, {bytes(claim(6))});
  EXPECT_GT(met, 3);
}

TEST_P(redis_nth_call, of_a_look_and_of_a_list) {
  const auto mode = spi::mode::shared;
  const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
  for (const redis::script* each : {&all->inspect, &all->list}) {
    met = 0;
    sweep({claim(1, mode), claim(2, mode), claim(3)}, *each, {});
    EXPECT_GT(met, 1);
  }
}

TEST_P(redis_nth_call, of_a_forced_release) {
  sweep(claims(3), caller.scripts().revoke, {"1"});
  EXPECT_GT(met, 2);
  met = 0;
  sweep(claims(7), caller.scripts().revoke, {"1"});
  EXPECT_GT(met, 2);
}

}  // namespace

// Broken (traps): numbers written by Lua's own conversion lose their last digits, and all fences of a
// second would be equal.
TEST(redis_scripts, no_number_becomes_text_by_luas_own_conversion) {
  const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
  for (const redis::script* each :
       {&all->attempt, &all->leave, &all->renew, &all->change, &all->revoke, &all->inspect,
        &all->list, &all->latch, &all->simple.attempt, &all->simple.leave, &all->simple.renew,
        &all->simple_inspect}) {
    const std::string& text = each->text();
    EXPECT_EQ(text.find("tostring"), std::string::npos);
    EXPECT_EQ(text.find("cjson"), std::string::npos);
    for (const char* number : {"now", "fence", "last", "fin", "ttl", "count", "generation"}) {
      EXPECT_EQ(text.find(std::string(".. ") + number + "\n"), std::string::npos) << number;
      EXPECT_EQ(text.find(std::string(".. ") + number + " "), std::string::npos) << number;
      EXPECT_EQ(text.find(std::string(" ") + number + " .."), std::string::npos) << number;
    }
  }
}

// Broken (H36): a long queue would block the server for everybody.
TEST(redis_scripts, a_verb_costs_no_more_with_a_thousand_waiters_than_with_ten) {
  const redis_server server;
  script_caller caller(server.port(), {});
  const auto place = redis::place_of({"", "stock"});
  const std::vector<std::string> keys{place.state, redis::observed_key(place.partition)};
  const auto queue = [&](std::uint16_t number) {
    spi::claim claim;
    claim.id.bytes[0] = static_cast<std::uint8_t>(number >> 8U);
    claim.id.bytes[1] = static_cast<std::uint8_t>(number);
    claim.ttl = 60s;
    const std::string bytes =
        redis::claim_bytes(claim, {process_name(1), 1min}, redis::queueing::allowed, std::nullopt);
    caller.run(caller.scripts().attempt, keys, {bytes, ""});
  };
  const auto keys_touched = [&] {
    const long before = server.info("total_commands_processed");
    queue(9'999);
    return server.info("total_commands_processed") - before;
  };
  for (std::uint16_t i = 0; i < 10; ++i) queue(i);
  const long few = keys_touched();
  for (std::uint16_t i = 10; i < 1'000; ++i) queue(i);
  EXPECT_LE(keys_touched(), few + 4);
}

}  // namespace holdfast::test
