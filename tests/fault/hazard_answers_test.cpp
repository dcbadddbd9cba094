// Hazards of lost and late answers, each known from practice.
#include "fault/fault_world.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

TEST(hazard_answers, an_acquire_whose_answer_was_lost_is_the_same_grant) {
  // Broken: the retry is a second claim, with another fence, or waits for the first.
  fault_world world({verb::attempt, fault::answer_lost, 1});
  const auto asked = world.ask(world.troubled());
  world.expect_granted(asked, 3s);  // one command deadline and a pause
  const auto state = world.on_server("stock");
  ASSERT_EQ(state.holders.size(), 1U);
  EXPECT_EQ(state.holders.front().fence, asked->granted->fence());
  EXPECT_EQ(asked->granted->fence(), fence_token(1));  // granted once
}

TEST(hazard_answers, a_retry_never_waits_for_its_own_orphan) {
  // Broken: a new id per retry queues behind what the lost request created.
  engine_bench bench;
  const auto asked = bench.ask();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench.store->answer_attempt(no_answer<spi::outcome>()));
    bench.runtime->run_for(2s);
  }
  EXPECT_EQ(bench.store->take_log(),
            "attempt a, attempt a, attempt a, attempt a, attempt a, attempt a");
}

TEST(hazard_answers, a_replayed_acquire_is_one_hold_and_one_release_frees_it) {
  // Broken: a resent acquire counts as a second entry, and one release leaves it held forever
  // (redisson#7367).
  for (const fault what : {fault::answer_lost, fault::closed_after, fault::request_late}) {
    fault_world world({verb::attempt, what, 1});
    const auto asked = world.ask(world.troubled());
    world.expect_granted(asked, 3s);
    world.expect_hold(asked, 5s);  // the late one arrives meanwhile
    world.expect_release(asked);
    EXPECT_TRUE(world.on_server("stock").holders.empty()) << to_string(what);
    world.expect_nothing_left();
  }
}

TEST(hazard_answers, a_release_whose_answer_was_lost_is_not_a_loss) {
  // Broken: the second release finds nothing and tells the caller that its lock was lost.
  fault_world world({verb::leave, fault::answer_lost, 1});
  const auto asked = world.ask(world.troubled());
  ASSERT_TRUE(asked->granted);
  const auto said = world.troubled().release(*asked);
  world.pass(10s);
  EXPECT_EQ(*said, "unavailable");
  EXPECT_EQ(world.troubled().events->count(event_kind::lost), 0U);
  EXPECT_EQ(world.troubled().engine->live_claims(), 0U);
}

TEST(hazard_answers, a_release_that_was_never_delivered_is_repeated) {
  // Broken: the lock stays blocked until its ttl although its owner released it.
  fault_world world({verb::leave, fault::request_lost, 1});
  const auto asked = world.ask(world.troubled());
  const auto next = world.ask(world.other());
  asked->granted->release();
  world.expect_granted(next, 3s);  // half of the ttl
}

TEST(hazard_answers, a_late_duplicate_does_not_revive_what_was_released) {
  // Broken: the first request arrives after its retry was granted and released, and holds the lock
  // for nobody.
  fault_world world({verb::attempt, fault::request_very_late, 1});
  const auto asked = world.ask(world.troubled());
  world.expect_granted(asked, 3s);
  world.expect_release(asked);
  for (int i = 0; i < 30; ++i) {
    world.pass(1s);
    EXPECT_TRUE(world.on_server("stock").holders.empty()) << i;
  }
  EXPECT_TRUE(world.fault_met());
}

TEST(hazard_answers, a_late_duplicate_does_not_revive_what_was_cancelled) {
  // Broken: the same for a caller that gave up, whose claim nobody releases then.
  fault_world world({verb::attempt, fault::request_very_late, 1});
  const auto asked = world.ask(world.troubled());
  world.pass(500ms);
  asked->handle->cancel();
  for (int i = 0; i < 30; ++i) {
    world.pass(1s);
    EXPECT_TRUE(world.on_server("stock").holders.empty()) << i;
  }
}

TEST(hazard_answers, a_late_renewal_does_not_revive_what_was_released) {
  // Broken: a renewal that arrives after the release sets the key again (redisson#1966).
  fault_world world({verb::renew, fault::request_very_late, 1});
  const auto asked = world.ask(world.troubled());
  world.pass(3s);  // the renewal is on its way
  ASSERT_TRUE(world.fault_met());
  world.expect_release(asked);
  for (int i = 0; i < 30; ++i) {
    world.pass(1s);
    EXPECT_TRUE(world.on_server("stock").holders.empty()) << i;
  }
}

TEST(hazard_answers, a_late_downgrade_does_not_let_readers_in_beside_a_writer) {
  // Broken: the downgrade arrives after the upgrade that followed it.
  fault_world world({verb::change, fault::request_very_late, 1});
  const auto writer = world.ask(world.troubled());
  const auto change = [&](spi::mode to) {
    std::optional<result<void>> answer;
    writer->granted->change(to, [&](result<void> given) { answer = std::move(given); });
    EXPECT_TRUE(world.wait_until([&] { return answer.has_value(); }, 3s));
    return *answer;
  };
  EXPECT_FALSE(change(spi::mode::shared).has_value());
  EXPECT_TRUE(change(spi::mode::shared).has_value());
  if (change(spi::mode::exclusive)) {
    auto shared = brief_request();
    shared.mode = spi::mode::shared;
    const auto reader = world.ask(world.other(), shared);
    EXPECT_FALSE(world.wait_until([&] { return reader->answered(); }, 30s)) << "two valid holders";
  }
}

}  // namespace
}  // namespace holdfast::test
