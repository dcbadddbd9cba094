// Trying, waiting for a while, waiting forever.
#include "contract/flavours.hpp"
#include "support/also_longer.hpp"

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_EXCLUSIVE(waiting);

TEST_P(waiting, a_try_is_answered_at_once) {
  // Broken: "try" waits for the holder.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  const time_point before = clock::now();
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_LT(clock::now() - before, 20s);
}

TEST_P(waiting, a_try_never_queues) {
  // Broken: a caller that only tried becomes the holder later, and nobody knows.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_EQ(waiters(a, "stock/42"), 0U);
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_TRUE(becomes_free(a, "stock/42"));
}

TEST_P(waiting, a_wait_ends_when_its_time_is_over) {
  // Broken: a limit that is missed in either direction.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  // Connected, even if a claim has a connection of its own: no handshake is timed.
  EXPECT_THAT(make(b)->acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_TRUE(
      waits_in_vain(200ms, [&](duration wait) { return make(b)->acquire({.wait = wait}); }));
  EXPECT_TRUE(has_waiters(a, "stock/42", 0));
  EXPECT_TRUE(held->valid());
}

TEST_P(waiting, a_wait_behind_a_thread_of_the_same_client_ends_too) {
  // Broken: a waiter in the local queue is not under the deadline.
  if (!supported()) return;
  const client a = open();
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(
      waits_in_vain(300ms, [&](duration wait) { return make(a)->acquire({.wait = wait}); }));
}

TEST_P(waiting, a_waiter_gets_it_when_it_is_released) {
  // Broken: a lost wake-up.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto lock = make(b);
  for (int round = 0; round < 10; ++round) {
    auto held = make(a)->acquire();
    ASSERT_THAT(held, succeeds());
    auto waits = in_thread([&] { return lock->acquire({.wait = patience}); });
    ASSERT_TRUE(has_waiters(a, "stock/42", 1));
    const time_point released = clock::now();
    ASSERT_THAT(held->release(), succeeds());
    ASSERT_TRUE(arrives(waits));
    const auto got = waits.get();
    ASSERT_THAT(got, succeeds());
    EXPECT_LT(clock::now() - released, 20s);
    EXPECT_GT(got->fence(), fence_token{});
  }
}

TEST_P(waiting, without_a_limit_it_waits_until_granted) {
  // Broken: "forever" overflows into "not at all".
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  auto waits = in_thread([&] { return make(b)->acquire(); });
  ASSERT_TRUE(has_waiters(a, "stock/42", 1));
  EXPECT_FALSE(arrives(waits, 20ms));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(waiting, a_callback_is_answered_like_a_call) {
  // Broken: the asynchronous interface behaves differently from the blocking one.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> tried;
  reply<lease> waits;
  make(b)->async_acquire({.wait = 0s}, {}, tried.callback());
  EXPECT_THAT(tried.future.get(), fails_with(errc::busy));
  EXPECT_TRUE(waits_in_vain(300ms, [&](duration wait) {
    reply<lease> timed;
    make(b)->async_acquire({.wait = wait}, {}, timed.callback());
    return timed.future.get();
  }));
  make(b)->async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock/42", 1));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_P(waiting, the_blocker_is_named) {
  // Broken: an operator cannot find out who holds it.
  if (!supported()) return;
  client_options options;
  options.payload = "host-7:17:backup";
  const client a = open(options);
  const client b = open();
  const auto held = make(a)->acquire();
  ASSERT_THAT(held, succeeds());
  const auto answer = make(b)->acquire({.wait = 0s});
  ASSERT_THAT(answer, fails_with(errc::busy));
  if (!b.caps().reports_holders) {
    EXPECT_THAT(answer.error().message(), testing::HasSubstr("held by another"));
    return;
  }
  const bool leads = std::get<1>(GetParam()).name == "leader";
  EXPECT_THAT(answer.error().message(),
              testing::HasSubstr(leads ? "candidate" : "host-7:17:backup"));
}

TEST_P(waiting, a_negative_wait_is_a_try) {
  // Broken: the value interface refused what the std interface takes for a try.
  if (!supported()) return;
  const client a = open();
  const client b = open();
  const auto held = make(a)->acquire({.wait = -1ns});
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(make(b)->acquire({.wait = -1h}), fails_with(errc::busy));
}

TEST_P(waiting, what_is_out_of_its_limits_is_refused) {
  // Broken: a ttl of zero deletes a lock.
  if (!supported()) return;
  const client a = open();
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.ttl = 99ms}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.ttl = 25h}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.ttl = 2s, .notice = 1s}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.lock_delay = -1s}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.retry = retry_policy::times(0)}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { make(a, "n", {.ttl = 100ms}); }), "nothing");
}

}  // namespace
}  // namespace holdfast::test
