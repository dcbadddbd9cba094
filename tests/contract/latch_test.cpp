// The count-down latch.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(latches);

// If the store has no latches, every call must say so; the test then ends.
bool has_latches(const client& from) {
  if (from.caps().latches) return true;
  latch start(from, "start");
  EXPECT_THAT(start.set(1), fails_with(errc::unsupported));
  EXPECT_THAT(start.count_down(), fails_with(errc::unsupported));
  EXPECT_THAT(start.count(), fails_with(errc::unsupported));
  EXPECT_THAT(start.wait(), fails_with(errc::unsupported));
  return false;
}

// Redisson's latches: one that does not exist is open, and an existing one lives until it is
// counted down.
bool like_redissons(const client& from) { return from.caps().engine == "redis, dialect=redisson"; }

TEST_P(latches, waiting_ends_when_the_last_has_counted_down) {
  // Broken: the start signal comes too early, or never.
  const client a = open();
  const client b = open();
  if (!has_latches(a)) return;
  latch from_a(a, "start");
  latch from_b(b, "start");
  ASSERT_THAT(from_a.set(3), succeeds());
  auto waits = in_thread([&] { return from_b.wait({.wait = patience}); });
  EXPECT_EQ(from_b.count_down().value(), 2U);
  EXPECT_EQ(from_a.count_down().value(), 1U);
  EXPECT_FALSE(arrives(waits, 20ms));
  EXPECT_EQ(from_b.count_down().value(), 0U);
  EXPECT_THAT(waits.get(), succeeds());
  EXPECT_THAT(from_a.wait({.wait = patience}), succeeds());
}

TEST_P(latches, an_unset_latch_is_waited_for) {
  // Broken: the first to start runs through a latch that nobody has set yet.
  const client a = open();
  const client b = open();
  if (!has_latches(a)) return;
  latch from_a(a, "start");
  latch from_b(b, "start");
  if (like_redissons(a)) {
    EXPECT_EQ(from_a.count().value(), 0U);
    EXPECT_EQ(from_a.count_down().value(), 0U);
    EXPECT_THAT(from_b.wait({.wait = 0s}), succeeds());
    return;
  }
  EXPECT_EQ(from_a.count().value(), std::nullopt);
  EXPECT_THAT(from_a.count_down(), fails_with(errc::not_held));
  auto waits = in_thread([&] { return from_b.wait({.wait = patience}); });
  EXPECT_FALSE(arrives(waits, 20ms));
  ASSERT_THAT(from_a.set(1), succeeds());
  EXPECT_FALSE(arrives(waits, 20ms));
  ASSERT_THAT(from_a.count_down(), succeeds());
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(latches, a_live_latch_is_not_set_again) {
  // Broken: a second starter resets the count under the first one's workers.
  const client a = open();
  if (!has_latches(a)) return;
  latch start(a, "start");
  ASSERT_THAT(start.set(2), succeeds());
  EXPECT_THAT(start.set(5), fails_with(errc::conflict));
  EXPECT_EQ(start.count().value(), 2U);
  ASSERT_THAT(start.count_down(2), succeeds());
  EXPECT_EQ(start.count().value(), 0U);
  EXPECT_THAT(start.set(1), succeeds());
  EXPECT_EQ(start.count().value(), 1U);
}

TEST_P(latches, the_count_never_falls_below_zero) {
  // Broken: one worker too many and the next use waits forever.
  const client a = open();
  if (!has_latches(a)) return;
  latch start(a, "start");
  ASSERT_THAT(start.set(2), succeeds());
  EXPECT_EQ(start.count_down(5).value(), 0U);
  EXPECT_EQ(start.count_down().value(), 0U);
  ASSERT_THAT(start.set(1), succeeds());
  EXPECT_EQ(start.count().value(), 1U);
}

TEST_P(latches, a_count_down_with_an_id_counts_once) {
  // Broken: a job that was tried twice is counted as two.
  const client a = open();
  const client b = open();
  if (!has_latches(a)) return;
  latch from_a(a, "start");
  latch from_b(b, "start");
  ASSERT_THAT(from_a.set(3), succeeds());
  const auto job = countdown_id::from("job 7");
  EXPECT_EQ(from_a.count_down(1, job).value(), 2U);
  EXPECT_EQ(from_b.count_down(1, job).value(), 2U);
  EXPECT_EQ(from_b.count_down(1, countdown_id::from("job 8")).value(), 1U);
  EXPECT_EQ(from_b.count_down().value(), 0U);
}

TEST_P(latches, a_wait_has_a_limit_and_can_be_stopped) {
  // Broken: a worker hangs forever if its starter died.
  const client a = open();
  if (!has_latches(a)) return;
  latch start(a, "start");
  ASSERT_THAT(start.set(1), succeeds());
  // A single look, which must be answered soon.
  for (const duration at_once : {duration(0s), duration(-1s)}) {
    EXPECT_TRUE(eventually([&] {
      const auto looked = start.wait({.wait = at_once});
      EXPECT_FALSE(looked);
      return !looked && looked.error() == errc::timed_out;
    }));
  }
  EXPECT_TRUE(waits_in_vain(300ms, [&](duration wait) { return start.wait({.wait = wait}); }));
  std::stop_source stop;
  auto waits = in_thread([&] { return start.wait({}, stop.get_token()); });
  EXPECT_FALSE(arrives(waits, 20ms));
  stop.request_stop();
  EXPECT_THAT(waits.get(), fails_with(errc::cancelled));
  EXPECT_THAT(start.wait({}, stop.get_token()), fails_with(errc::cancelled));
}

TEST_P(latches, all_waiters_are_woken) {
  // Broken: one waiter gets the signal and the others stay asleep.
  const client a = open();
  const client b = open();
  if (!has_latches(a)) return;
  latch from_a(a, "start");
  ASSERT_THAT(from_a.set(1), succeeds());
  std::vector<reply<void>> waits(20);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    latch(i % 2 == 0 ? a : b, "start").async_wait({}, {}, waits[i].callback());
  }
  ASSERT_THAT(from_a.count_down(), succeeds());
  for (auto& each : waits) {
    ASSERT_TRUE(arrives(each.future));
    EXPECT_THAT(each.future.get(), succeeds());
  }
}

TEST_P(latches, closing_the_client_ends_its_waits) {
  // Broken: close() returns while somebody still waits on the client.
  client a = open();
  if (!has_latches(a)) return;
  latch start(a, "start");
  ASSERT_THAT(start.set(1), succeeds());
  reply<void> waits;
  start.async_wait({}, {}, waits.callback());
  auto blocked = in_thread([&] { return start.wait(); });
  EXPECT_FALSE(arrives(blocked, 20ms));
  a.close();
  EXPECT_TRUE(arrives(waits.future, 0s));
  EXPECT_THAT(waits.future.get(), fails_with(errc::cancelled));
  EXPECT_THAT(blocked.get(), fails_with(errc::cancelled));
  EXPECT_THAT(start.set(1), fails_with(errc::cancelled));
  EXPECT_THAT(start.count(), fails_with(errc::cancelled));
  EXPECT_THAT(start.wait(), fails_with(errc::cancelled));
}

TEST_P(latches, a_latch_is_forgotten_some_time_after_its_last_change) {
  // Broken: every start-up leaves something behind forever.
  const client a = open();
  if (!has_latches(a) || like_redissons(a)) return;
  EXPECT_TRUE(also_longer(1s, [&](duration life) {
    latch start(a, "start/" + std::to_string(life.count()), {.life = life});
    EXPECT_THAT(start.set(1), succeeds());
    const bool seen = start.count().value() == 1U;
    const auto forgotten = [&] {
      const auto count = start.count();
      EXPECT_THAT(count, succeeds());
      return !count || *count == std::nullopt;
    };
    EXPECT_TRUE(eventually(forgotten, life + patience));
    EXPECT_THAT(start.set(2), succeeds());
    return seen ? testing::AssertionSuccess() : testing::AssertionFailure() << "forgotten at once";
  }));
}

TEST_P(latches, what_is_out_of_its_limits_is_refused) {
  // Broken: a count that wraps around.
  const client a = open();
  EXPECT_EQ(thrown_by([&] { latch(a, ""); }), "invalid");
  EXPECT_EQ(thrown_by([&] { latch(a, "l", {.life = 999ms}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { latch(a, "l", {.life = std::chrono::days(31)}); }), "invalid");
  latch start(a, "start");
  EXPECT_THAT(start.set(0), fails_with(errc::invalid));
  EXPECT_THAT(start.set(1'000'001), fails_with(errc::invalid));
  EXPECT_THAT(start.count_down(0), fails_with(errc::invalid));
}

TEST_P(latches, ids_of_different_texts_differ) {
  // Broken: two jobs are taken for one, and the latch never opens.
  const auto same = [](countdown_id left, countdown_id right) {
    return left.high == right.high && left.low == right.low;
  };
  EXPECT_TRUE(same(countdown_id::from("job"), countdown_id::from("job")));
  EXPECT_FALSE(same(countdown_id::from(""), countdown_id::from(std::string_view("\0", 1))));
  EXPECT_FALSE(same(countdown_id::from("ab"), countdown_id::from("ba")));
  EXPECT_FALSE(same(countdown_id::from("job 1"), countdown_id::from("job 2")));
}

}  // namespace
}  // namespace holdfast::test
