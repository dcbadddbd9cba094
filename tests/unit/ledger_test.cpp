// The ledger's verbs on a plain mutex: each idempotent by id, none creates what it should not, and
// fences only grow.
#include "ledger_harness.hpp"

namespace holdfast::memory {

using ledger_test = ledger_harness;

TEST_F(ledger_test, a_free_resource_is_granted_at_once_for_its_whole_ttl) {
  const spi::granted grant = granted(make_claim(1));
  EXPECT_EQ(grant.fence.value(), 1U);
  EXPECT_EQ(grant.ttl, 10s);
  EXPECT_EQ(grant.at, now);
  EXPECT_FALSE(grant.offer);
  EXPECT_FALSE(grant.wanted);
}

TEST_F(ledger_test, a_held_resource_is_not_granted_again) {
  granted(make_claim(1));
  const spi::blocked answer = blocked(make_claim(2));
  EXPECT_TRUE(answer.queued);
  EXPECT_EQ(answer.blocker, "host:1");
  EXPECT_EQ(answer.recheck_after, 10s);
}

// A repeated attempt must neither queue behind itself nor count a second hold.
TEST_F(ledger_test, a_repeated_attempt_of_a_holder_answers_the_same_fence) {
  const auto one = make_claim(1);
  const spi::granted first = granted(one);
  pass(4s);
  const spi::granted second = granted(one);
  EXPECT_EQ(first.fence, second.fence);
  EXPECT_EQ(second.ttl, 10s);
  EXPECT_EQ(leave(one), spi::departure::was_holder);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_test, a_repeated_attempt_of_a_waiter_keeps_its_place) {
  const auto one = make_claim(1), two = make_claim(2, fair()), three = make_claim(3, fair());
  granted(one);
  blocked(two);
  blocked(three);
  EXPECT_TRUE(blocked(two).queued);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 2"});
}

TEST_F(ledger_test, one_verb_leaves_whatever_the_claim_has_become) {
  const auto one = make_claim(1), two = make_claim(2);
  granted(one);
  blocked(two);
  EXPECT_EQ(leave(two), spi::departure::was_waiting);
  EXPECT_EQ(leave(one), spi::departure::was_holder);
  EXPECT_EQ(leave(one), spi::departure::gone);
  EXPECT_EQ(leave(make_claim(9, {.name = "never seen"})), spi::departure::gone);
  EXPECT_TRUE(book.empty());
}

// A waiter that gives up must not be handed the lock by its own withdrawal.
TEST_F(ledger_test, a_leaving_claim_is_not_granted_on_its_way_out) {
  const auto one = make_claim(1), two = make_claim(2, fair());
  granted(one);
  blocked(two);
  pushes();
  pass(10s);
  EXPECT_EQ(leave(two), spi::departure::was_waiting);
  EXPECT_EQ(pushes(), said{});
}

TEST_F(ledger_test, nobody_leaves_with_anothers_lock) {
  granted(make_claim(1));
  EXPECT_EQ(leave(make_claim(2)), spi::departure::gone);
  EXPECT_EQ(holders(), 1U);
}

TEST_F(ledger_test, a_try_that_is_turned_away_leaves_no_trace) {
  const auto one = make_claim(1);
  granted(one);
  const spi::blocked answer = blocked(make_claim(2, {.queued = false}));
  EXPECT_FALSE(answer.queued);
  EXPECT_EQ(answer.recheck_after, 10s);
  EXPECT_EQ(pushes(), said{});
  leave(one);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_test, a_late_attempt_does_not_revive_what_was_left) {
  const auto one = make_claim(1);
  granted(one);
  leave(one, on_leave::remember);
  pass(69s);
  EXPECT_EQ(refused(one), errc::lost);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
  EXPECT_TRUE(book.empty());
}

// The withdrawal may overtake the attempt that it withdraws.
TEST_F(ledger_test, a_claim_that_was_left_before_it_came_is_not_placed) {
  const auto one = make_claim(1);
  EXPECT_EQ(leave(one, on_leave::remember), spi::departure::gone);
  EXPECT_EQ(refused(one), errc::lost);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_test, tombstones_end) {
  const auto one = make_claim(1);
  leave(one, on_leave::remember);
  EXPECT_EQ(book.tombstones(), 1U);
  pass(70s);
  granted(make_claim(2));
  EXPECT_EQ(book.tombstones(), 0U);
}

TEST_F(ledger_test, an_attempt_that_comes_too_late_places_nothing) {
  const auto one = make_claim(1);
  const auto late = book.attempt(now, one, 1, now - 1ns, out);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error(), errc::lost);
  EXPECT_TRUE(book.empty());
  EXPECT_TRUE(book.attempt(now, one, 1, now, out).has_value());
  // It is already there: late or not, the answer says where.
  EXPECT_TRUE(book.attempt(now, one, 1, now - 1ns, out).has_value());
}

TEST_F(ledger_test, a_renewal_never_creates) {
  const auto one = make_claim(1);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
  granted(one);
  leave(one);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_test, a_renewal_restarts_the_ttl) {
  const auto one = make_claim(1);
  granted(one);
  pass(9s);
  const spi::renewal answer = renew(one);
  EXPECT_EQ(answer.state, spi::hold_state::renewed);
  EXPECT_EQ(answer.grant.ttl, 10s);
  EXPECT_EQ(answer.grant.fence.value(), 1U);
  pass(9s);
  blocked(make_claim(2));
}

TEST_F(ledger_test, a_hold_ends_with_its_ttl_and_its_renewal_says_so) {
  const auto one = make_claim(1);
  granted(one);
  pass(10s);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_test, an_unrenewed_lease_ends_after_its_ttl_whatever_is_sent) {
  const auto one = make_claim(1, {.renewed = false});
  granted(one);
  pass(4s);
  const spi::renewal answer = renew(one);
  EXPECT_EQ(answer.state, spi::hold_state::held);
  EXPECT_EQ(answer.grant.ttl, 6s);
  EXPECT_EQ(granted(one).ttl, 6s);
  pass(6s);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
}

TEST_F(ledger_test, fences_grow_and_a_block_reserves_its_numbers) {
  const auto one = make_claim(1, {.fence_block = 32}), two = make_claim(2);
  EXPECT_EQ(granted(one).fence.value(), 1U);
  leave(one);
  EXPECT_EQ(granted(two).fence.value(), 33U);
  EXPECT_EQ(granted(make_claim(3, {.name = "other"})).fence.value(), 1U);
}

// Forgetting idle names bounds the memory; it must not turn a fence back.
TEST_F(ledger_test, fences_grow_although_idle_names_are_forgotten) {
  memory::ledger small({.idle_limit = 4});
  std::uint64_t before = 0;
  std::uint64_t number = 0;
  for (int round = 0; round < 50; ++round) {
    const auto claim = make_claim(++number);
    const auto answer = small.attempt(now, claim, 1, std::nullopt, out);
    const std::uint64_t fence = std::get<spi::granted>(answer.value()).fence.value();
    EXPECT_GT(fence, before);
    before = fence;
    small.leave(now, *claim, 1, on_leave::forget, out);
    for (int other = 0; other < 7; ++other) {
      ++number;
      const auto filler = make_claim(number, {.name = "n" + std::to_string(number)});
      ASSERT_TRUE(small.attempt(now, filler, 1, std::nullopt, out).has_value());
      small.leave(now, *filler, 1, on_leave::forget, out);
    }
  }
}

TEST_F(ledger_test, a_name_takes_a_limited_number_of_claims) {
  memory::ledger small({.claim_limit = 2});
  ASSERT_TRUE(small.attempt(now, make_claim(1), 1, std::nullopt, out).has_value());
  ASSERT_TRUE(small.attempt(now, make_claim(2), 1, std::nullopt, out).has_value());
  ASSERT_TRUE(small.attempt(now, make_claim(3), 1, std::nullopt, out).has_value());
  const auto answer = small.attempt(now, make_claim(4), 1, std::nullopt, out);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error(), errc::overloaded);
}

TEST_F(ledger_test, a_copy_is_a_snapshot) {
  const auto one = make_claim(1);
  granted(one);
  memory::ledger before = book;
  leave(one);
  EXPECT_TRUE(book.empty());
  EXPECT_EQ(before.inspect(now, one->resource, out).holders.size(), 1U);
}

// A holder is told once that somebody waits, so that it can hand over or step down.
TEST_F(ledger_test, a_holder_learns_of_contention_once) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2));
  EXPECT_EQ(pushes(), said{"wanted 1"});
  blocked(make_claim(3));
  blocked(make_claim(2));
  EXPECT_EQ(pushes(), said{});
  EXPECT_TRUE(renew(one).grant.wanted);
}

TEST_F(ledger_test, a_grant_says_that_others_wait_already) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2, fair()));
  blocked(make_claim(3, fair()));
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 2"});
  EXPECT_TRUE(last_grant.wanted);
  blocked(make_claim(4, fair()));
  EXPECT_EQ(pushes(), said{});
}

}  // namespace holdfast::memory
