// How holds end other than by their holder: lock delay, force, revocation; and what people see.
#include "ledger_harness.hpp"

namespace holdfast::memory {

using ledger_end = ledger_harness;

TEST_F(ledger_end, after_an_abnormal_end_the_lock_stays_blocked_for_its_delay) {
  granted(make_claim(1, {.lock_delay = 5s}));
  const auto two = make_claim(2, fair());
  blocked(two);
  pushes();
  pass(10s);
  // Counted from the end, not from the moment somebody noticed it.
  EXPECT_EQ(blocked(two).recheck_after, 5s);
  EXPECT_FALSE(blocked(make_claim(3, {.mode = spi::mode::shared, .queued = false})).queued);
  pass(4s);
  EXPECT_EQ(blocked(two).recheck_after, 1s);
  pass(1s);
  EXPECT_EQ(granted(two).fence.value(), 2U);
}

TEST_F(ledger_end, a_lock_that_was_left_is_free_at_once_whatever_its_delay) {
  const auto one = make_claim(1, {.lock_delay = 5s});
  granted(one);
  leave(one);
  granted(make_claim(2));
}

TEST_F(ledger_end, a_blocked_lock_is_not_upgraded) {
  const auto one = make_claim(1, shared());
  granted(make_claim(2, {.mode = spi::mode::shared, .ttl = 1s, .lock_delay = 5s}));
  granted(one);
  pass(2s);
  EXPECT_EQ(change(one, spi::mode::exclusive).error(), errc::would_deadlock);
  pass(4s);
  EXPECT_TRUE(change(one, spi::mode::exclusive).has_value());
}

// The fence is forgotten last: not while the delay runs.
TEST_F(ledger_end, a_blocked_lock_is_not_forgotten) {
  memory::ledger small({.idle_limit = 1});
  const auto one = make_claim(1, {.lock_delay = 60s});
  ASSERT_TRUE(small.attempt(now, one, 1, std::nullopt, out).has_value());
  pass(11s);
  small.settle(now, out);
  for (std::uint64_t i = 2; i < 10; ++i) {
    const auto other = make_claim(i, {.name = "n" + std::to_string(i)});
    ASSERT_TRUE(small.attempt(now, other, 1, std::nullopt, out).has_value());
    small.leave(now, *other, 1, on_leave::forget, out);
  }
  const auto answer = small.attempt(now, make_claim(20), 1, std::nullopt, out);
  EXPECT_TRUE(std::holds_alternative<spi::blocked>(answer.value()));
}

TEST_F(ledger_end,
       force_frees_at_once_notifies_the_holder_and_grants_the_next_with_a_greater_fence) {
  const auto one = make_claim(1, {.lock_delay = 5s}), two = make_claim(2, fair());
  granted(one);
  blocked(two);
  pushes();
  pass(3s);
  const auto taken = book.revoke(now, one->resource, spi::revocation::force, "", out);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].claim, spi::public_id(one->id));
  EXPECT_EQ(taken[0].fence->value(), 1U);
  EXPECT_EQ(taken[0].remaining, 7s);
  EXPECT_EQ(taken[0].held_for, 3s);
  EXPECT_EQ(taken[0].payload, "host:1");
  EXPECT_EQ(out.pushes[0].why, errc::lost);
  EXPECT_EQ(pushes(), (said{"gone 1", "granted 2"}));
  EXPECT_EQ(last_grant.fence.value(), 2U);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
}

TEST_F(ledger_end, force_takes_only_the_claim_that_was_named) {
  const auto one = make_claim(1, shared()), two = make_claim(2, shared());
  granted(one);
  granted(two);
  const auto taken =
      book.revoke(now, one->resource, spi::revocation::force, spi::public_id(two->id), out);
  EXPECT_EQ(taken.size(), 1U);
  EXPECT_EQ(pushes(), said{"gone 2"});
  EXPECT_EQ(holders(), 1U);
  EXPECT_TRUE(book.revoke(now, {"", "nobody"}, spi::revocation::force, "", out).empty());
}

TEST_F(ledger_end, a_revoked_hold_is_protected_to_its_end_but_not_renewed) {
  const auto one = make_claim(1), two = make_claim(2, fair());
  granted(one);
  blocked(two);
  pushes();
  pass(4s);
  EXPECT_EQ(book.revoke(now, one->resource, spi::revocation::safe, "", out).size(), 1U);
  EXPECT_EQ(pushes(), said{"gone 1"});
  pass(1s);
  const spi::renewal answer = renew(one);
  EXPECT_EQ(answer.state, spi::hold_state::held);
  EXPECT_EQ(answer.grant.ttl, 5s);
  // Told again: the first push may have been lost.
  EXPECT_EQ(pushes(), said{"gone 1"});
  EXPECT_EQ(granted(one).ttl, 5s);
  pass(5s - 1ns);
  EXPECT_TRUE(blocked(two).queued);
  pass(1ns);
  EXPECT_EQ(renew(one).state, spi::hold_state::lost);
  EXPECT_EQ(pushes(), said{"granted 2"});
}

TEST_F(ledger_end, a_revoked_holder_that_leaves_frees_the_lock_at_once) {
  const auto one = make_claim(1), two = make_claim(2, fair());
  granted(one);
  blocked(two);
  book.revoke(now, one->resource, spi::revocation::safe, "", out);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 2"});
}

TEST_F(ledger_end, a_revoked_offer_is_not_completed) {
  const auto one = make_claim(1), two = make_claim(2, fair());
  granted(one);
  blocked(two);
  leave(one);
  book.revoke(now, one->resource, spi::revocation::safe, "", out);
  EXPECT_EQ(renew(two).grant.ttl, 2s);
  pass(2s);
  EXPECT_EQ(renew(two).state, spi::hold_state::lost);
}

TEST_F(ledger_end, people_see_holders_and_waiters_in_order) {
  const auto one = make_claim(9, shared()), two = make_claim(1, shared()), three = make_claim(5);
  granted(one);
  pass(1s);
  granted(two);
  pass(1s);
  blocked(three);
  pass(1s);
  const spi::resource_state state = book.inspect(now, one->resource, out);
  ASSERT_EQ(state.holders.size(), 2U);
  EXPECT_EQ(state.holders[0].payload, "host:9");
  EXPECT_EQ(state.holders[0].remaining, 7s);
  EXPECT_EQ(state.holders[0].held_for, 3s);
  EXPECT_EQ(state.holders[0].mode, spi::mode::shared);
  ASSERT_EQ(state.waiters.size(), 1U);
  EXPECT_EQ(state.waiters[0].payload, "host:5");
  EXPECT_EQ(state.waiters[0].waiting_for, 1s);
  EXPECT_EQ(state.waiters[0].claim, spi::public_id(three->id));
  pass(10s);
  EXPECT_EQ(book.inspect(now, one->resource, out).holders.size(), 1U);
}

TEST_F(ledger_end, people_see_that_a_name_is_blocked_and_for_how_long) {
  // Broken: an operator sees "free", and nobody is granted.
  const auto one = make_claim(1, {.lock_delay = 5s});
  granted(one);
  EXPECT_FALSE(book.inspect(now, one->resource, out).blocked_for);
  pass(12s);
  const spi::resource_state state = book.inspect(now, one->resource, out);
  EXPECT_TRUE(state.holders.empty());
  EXPECT_EQ(state.blocked_for, 3s);
  const auto found = book.list(now, "", "", out);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].holders + found[0].waiters, 0U);
  EXPECT_EQ(found[0].blocked_for, 3s);
  pass(3s);
  EXPECT_FALSE(book.inspect(now, one->resource, out).blocked_for);
  EXPECT_TRUE(book.list(now, "", "", out).empty());
}

TEST_F(ledger_end, a_list_has_the_names_with_claims_under_a_prefix_and_namespace) {
  granted(make_claim(1, {.name = "a/1"}));
  granted(make_claim(2, {.name = "a/2"}));
  blocked(make_claim(3, {.name = "a/2"}));
  granted(make_claim(4, {.name = "b"}));
  const auto gone = make_claim(5, {.name = "a/0"});
  granted(gone);
  leave(gone);
  const auto found = book.list(now, "", "a/", out);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a/1");
  EXPECT_EQ(found[0].holders, 1U);
  EXPECT_EQ(found[1].name, "a/2");
  EXPECT_EQ(found[1].waiters, 1U);
  EXPECT_TRUE(book.list(now, "other", "", out).empty());
  EXPECT_EQ(book.list(now, "", "", out).size(), 3U);
}

TEST_F(ledger_end, an_observer_sees_each_change_once) {
  out.observed = true;
  const auto one = make_claim(1), two = make_claim(2, fair()), three = make_claim(3);
  granted(one);
  blocked(two);
  blocked(three);
  renew(one);
  leave(three);
  leave(one);
  pass(2s);
  book.settle(now, out);
  std::vector<spi::event_kind> kinds;
  for (const ledger_event& each : out.events) kinds.push_back(each.event.kind);
  using kind = spi::event_kind;
  EXPECT_EQ(kinds,
            (std::vector<kind>{kind::granted, kind::queued, kind::queued, kind::renewed,
                               kind::withdrawn, kind::released, kind::granted, kind::expired}));
  EXPECT_EQ(out.events[0].event.fence->value(), 1U);
  EXPECT_EQ(out.events[0].event.name, "stock");
  EXPECT_EQ(out.events[1].event.claim, spi::public_id(two->id));
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_end, a_ttl_without_end_does_not_overflow) {
  const auto one = make_claim(1, {.ttl = forever});
  granted(one);
  pass(24h);
  blocked(make_claim(2));
  leave(one, on_leave::remember);
  EXPECT_EQ(refused(one), errc::lost);
}

}  // namespace holdfast::memory
