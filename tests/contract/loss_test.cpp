// Loss is announced, and before another can have the lock.
#include "contract/flavours.hpp"
#include "support/also_longer.hpp"
#include "support/recording_observer.hpp"

#include <thread>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(loss);

TEST_P(loss, a_forced_release_notifies_the_holder) {
  // Broken: an operator frees a lock and its holder never learns.
  if (!supported()) return;
  client a = open();
  client b = open();
  auto held = make(a, "stock/42", told_soon)->acquire();
  ASSERT_THAT(held, succeeds());
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  const fence_token before = held->fence();
  const auto taken = b.revoke("stock/42", revocation::force);
  ASSERT_THAT(taken, succeeds());
  ASSERT_EQ(taken->size(), 1U);
  EXPECT_EQ(taken->front().claim, held->claim());
  EXPECT_TRUE(told.wait());
  EXPECT_FALSE(held->valid());
  EXPECT_EQ(held->valid_for(), 0s);
  EXPECT_THAT(held->release(), fails_with(errc::lost));
  const auto next = make(b)->acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), before);
}

TEST_P(loss, a_safe_revocation_gives_nobody_the_lock_before_the_lease_has_ended) {
  // Broken: break-glass makes two holders.
  if (!supported()) return;
  client a = open();
  const client b = open();
  const time_point asked = clock::now();
  auto held = make(a, "stock/42", {.ttl = 400ms})->acquire();
  ASSERT_THAT(held, succeeds());
  flag told;
  const std::stop_callback on_lost(held->lost(), [&] { told.raise(); });
  ASSERT_THAT(a.revoke("stock/42", revocation::safe), succeeds());
  ASSERT_TRUE(told.wait());
  const auto next = make(b)->acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  if (a.caps().expires) {
    EXPECT_GE(clock::now() - asked, 250ms);
  }
  EXPECT_FALSE(held->valid());
}

TEST_P(loss, a_lease_that_is_not_renewed_ends_and_its_holder_knows_first) {
  // Broken: two processes consider themselves holders of the lock.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto held = make(a, "stock/42", {.ttl = 300ms, .renew = renew::never})->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_LE(held->valid_for(), 300ms);
  const std::stop_token lost = held->lost();
  const auto next = make(b)->acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
  EXPECT_GT(next->fence(), held->fence());
}

TEST_P(loss, a_lease_is_renewed_while_it_lives) {
  // Broken: work that takes longer than the ttl is cut off.
  if (!supported()) return;
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  const client a = open(options);
  const client b = open();
  EXPECT_TRUE(also_longer(500ms, [&](duration ttl) -> testing::AssertionResult {
    const std::string name = "stock/" + std::to_string(ttl.count());
    const auto held = make(a, name, {.ttl = ttl})->acquire({.wait = patience});
    if (!held) return testing::AssertionFailure() << held.error().detail;
    const fence_token before = held->fence();
    // Its connections are made before the time counts.
    EXPECT_THAT(b.inspect(name), succeeds());
    const auto other = make(b, name)->acquire({.wait = ttl * 6 / 5});
    if (other) {
      EXPECT_FALSE(held->valid());
      return testing::AssertionFailure() << "somebody else has it";
    }
    if (other.error() != errc::timed_out) {
      return testing::AssertionFailure() << other.error().message();
    }
    EXPECT_EQ(held->fence(), before);
    if (a.caps().expires) {
      EXPECT_TRUE(
          eventually([&] { return !held->valid() || seen->all(event_kind::renewed).size() >= 4; }));
    }
    if (!held->valid() || held->lost().stop_requested()) {
      return testing::AssertionFailure() << "it is lost";
    }
    return testing::AssertionSuccess();
  }));
}

TEST_P(loss, notice_is_given_before_the_end) {
  // Broken: no time is left to stop cleanly.
  if (!supported()) return;
  const client a = open();
  EXPECT_TRUE(also_longer(800ms, [&](duration ttl) {
    const lock_options options{.ttl = ttl, .renew = renew::never, .notice = ttl * 9 / 20};
    const auto held = make(a, "stock/42", options)->acquire();
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    flag told;
    std::atomic<bool> in_time{false};
    const time_point end = held->valid_until();
    const std::stop_callback on_lost(held->lost(), [&] {
      in_time = clock::now() < end;
      told.raise();
    });
    EXPECT_TRUE(told.wait(ttl + patience));
    return in_time ? testing::AssertionSuccess() : testing::AssertionFailure() << "told too late";
  }));
}

TEST_P(loss, after_a_release_no_loss_is_reported) {
  // Broken: work that ended well is reported as lost.
  if (!supported()) return;
  EXPECT_TRUE(also_longer(600ms, [&](duration ttl) {
    client a = open();
    auto held = make(a, "stock/42", {.ttl = ttl})->acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    const std::stop_token lost = held->lost();
    const auto released = held->release();
    if (!released) return testing::AssertionFailure() << released.error().message();
    a.close();
    EXPECT_FALSE(lost.stop_requested());
    return testing::AssertionSuccess();
  }));
}

TEST_P(loss, the_holder_is_notified_that_others_wait) {
  // Broken: a batch job never learns that it might step aside.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  if (!keeps_line(a)) return;  // waiters are not visible
  const std::stop_token wanted = held->wanted();
  EXPECT_FALSE(wanted.stop_requested());
  auto waits = in_thread([&] { return make(b)->acquire({.wait = patience}); });
  EXPECT_TRUE(eventually([&] { return wanted.stop_requested(); }));
  EXPECT_TRUE(held->wanted().stop_requested());
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(loss, after_an_abnormal_end_the_lock_stays_blocked_for_its_delay) {
  // Broken: a resource that cannot check fences is written by two holders.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const lock_options options{.ttl = 200ms, .renew = renew::never, .lock_delay = 300ms};
  const time_point asked = clock::now();  // the grant may be reported late, but is not made earlier
  const auto held = make(a, "stock/42", options)->acquire();
  if (!a.caps().supports_lock_delay) {
    EXPECT_THAT(held, fails_with(errc::unsupported));
    return;
  }
  ASSERT_THAT(held, succeeds());
  ASSERT_TRUE(eventually([&] { return !held->valid(); }));
  {
    // Granted at once only if the machine was paused until the delay was over.
    const auto early = make(b)->acquire({.wait = 0s});
    EXPECT_TRUE(early ? clock::now() - asked >= 450ms : early.error() == errc::busy);
  }
  EXPECT_THAT(make(b)->acquire({.wait = patience}), succeeds());
  EXPECT_GE(clock::now() - asked, 450ms);
}

TEST_P(loss, the_end_of_a_client_does_not_end_its_lock_delays) {
  // Broken: a program that lost its lock and therefore ends lets the next one in at once.
  if (!supported()) return;
  const client b = open();
  if (!b.caps().supports_lock_delay) return;
  EXPECT_TRUE(also_longer(200ms, [&](duration ttl) -> testing::AssertionResult {
    const std::string name = "stock/" + std::to_string(ttl.count());
    {
      const client a = open();
      const lock_options options{.ttl = ttl, .renew = renew::never, .lock_delay = 30s};
      const auto held = make(a, name, options)->acquire({.wait = 0s});
      if (!held) return testing::AssertionFailure() << "granted too late";
      EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
    }
    EXPECT_THAT(make(b, name)->acquire({.wait = 0s}), fails_with(errc::busy));
    return testing::AssertionSuccess();
  }));
}

TEST_P(loss, a_slow_listener_delays_neither_renewals_nor_the_truth) {
  // Broken: one callback that blocks costs all other leases of the client.
  if (!supported()) return;
  client a = open();
  const client b = open();
  EXPECT_TRUE(also_longer(500ms, [&](duration ttl) -> testing::AssertionResult {
    const std::string first_name = "first/" + std::to_string(ttl.count());
    const std::string second_name = "second/" + std::to_string(ttl.count());
    auto first = make(a, first_name, {.ttl = ttl})->acquire({.wait = patience});
    auto second = make(a, second_name, {.ttl = ttl})->acquire({.wait = patience});
    if (!first || !second) return testing::AssertionFailure() << "not granted";
    flag entered;
    flag go_on;
    const std::stop_callback on_lost(first->lost(), [&] {
      entered.raise();
      EXPECT_TRUE(go_on.wait());
    });
    take_away(a, first_name);
    EXPECT_TRUE(entered.wait());
    const bool taken = make(b, second_name)->acquire({.wait = ttl * 6 / 5}).has_value();
    const bool lived = !taken && second->valid();
    if (lived) {
      take_away(b, second_name);
      EXPECT_TRUE(eventually([&] { return !second->valid(); }));
    }
    go_on.raise();
    return lived ? testing::AssertionSuccess() : testing::AssertionFailure() << "it is lost";
  }));
}

}  // namespace
}  // namespace holdfast::test
