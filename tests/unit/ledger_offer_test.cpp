// Pushed grants: an offer until the process is heard from, and what happens to one that is not
// accepted.
#include "ledger_harness.hpp"

namespace holdfast::memory {

class ledger_offer : public ledger_harness {
 protected:
  // One holds, two and three wait, fair; then one leaves and two is offered it.
  void offer_to_two(const request& second = fair()) {
    two = make_claim(2, second);
    granted(one);
    blocked(two);
    blocked(three);
    pushes();
    leave(one);
    ASSERT_EQ(pushes(), said{"granted 2"});
  }
  const spi::claim_ptr one = make_claim(1);
  spi::claim_ptr two = make_claim(2, fair());
  const spi::claim_ptr three = make_claim(3, fair());
};

TEST_F(ledger_offer, a_pushed_grant_is_born_with_the_offer) {
  offer_to_two();
  EXPECT_TRUE(last_grant.offer);
  EXPECT_EQ(last_grant.ttl, 2s);
  EXPECT_EQ(last_grant.at, now);
  EXPECT_EQ(last_grant.fence.value(), 2U);
}

TEST_F(ledger_offer, an_offer_is_never_longer_than_the_ttl) {
  offer_to_two({.fair = true, .ttl = 500ms});
  EXPECT_EQ(last_grant.ttl, 500ms);
}

TEST_F(ledger_offer, the_first_renewal_makes_it_a_full_lease_with_the_same_fence) {
  offer_to_two();
  pass(1s);
  const spi::renewal answer = renew(two);
  EXPECT_EQ(answer.state, spi::hold_state::renewed);
  EXPECT_EQ(answer.grant.ttl, 10s);
  EXPECT_FALSE(answer.grant.offer);
  EXPECT_EQ(answer.grant.fence.value(), 2U);
  pass(9s);
  EXPECT_EQ(renew(two).state, spi::hold_state::renewed);
}

// The push was lost; the waiter asks again.
TEST_F(ledger_offer, an_attempt_finds_the_grant_whose_push_was_lost) {
  offer_to_two();
  pass(1s);
  const spi::granted grant = granted(two);
  EXPECT_FALSE(grant.offer);
  EXPECT_EQ(grant.ttl, 10s);
  EXPECT_EQ(grant.fence.value(), 2U);
}

TEST_F(ledger_offer, an_unrenewed_lease_counts_its_ttl_from_the_completion_of_its_offer) {
  offer_to_two({.fair = true, .renewed = false});
  pass(1s);
  const spi::renewal first = renew(two);
  EXPECT_EQ(first.state, spi::hold_state::held);
  EXPECT_EQ(first.grant.ttl, 10s);
  pass(1s);
  EXPECT_EQ(renew(two).grant.ttl, 9s);
}

// A paused process costs the others one offer, not a whole ttl.
TEST_F(ledger_offer, an_offer_that_is_not_taken_ends_and_the_next_is_granted_in_the_same_step) {
  offer_to_two();
  pass(1s);
  renew(three);
  pass(1s);
  blocked(make_claim(4, fair()));
  EXPECT_EQ(pushes(), (said{"granted 3", "wanted 3"}));
  EXPECT_EQ(renew(two).state, spi::hold_state::lost);
}

// A hundred frozen or dead processes cost those behind them one offer, not one each.
TEST_F(ledger_offer, silent_waiters_of_many_processes_cost_one_offer) {
  granted(one);
  for (std::uint64_t i = 100; i < 200; ++i) blocked(make_claim(i, fair()));
  blocked(three);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 100"});
  pass(1s);
  EXPECT_EQ(renew(three).state, spi::hold_state::waiting);
  pass(1s);
  EXPECT_EQ(renew(three).state, spi::hold_state::renewed);
  EXPECT_EQ(pushes(), said{});
}

TEST_F(ledger_offer, after_a_lapsed_offer_waiters_heard_since_are_offered_it_in_order) {
  const auto four = make_claim(4, fair()), five = make_claim(5, fair());
  offer_to_two();
  blocked(four);
  pass(1s);
  renew(four);
  blocked(five);
  pass(1s);
  // Three, the first waiter, was not heard from since two got the offer; four and five were.
  blocked(make_claim(6, fair()));
  EXPECT_EQ(pushes(), said{"granted 4"});
  leave(four);
  EXPECT_EQ(pushes(), said{"granted 5"});
}

TEST_F(ledger_offer, a_silent_waiter_keeps_its_place_and_is_served_once_it_speaks) {
  const auto four = make_claim(4, fair()), five = make_claim(5, fair());
  offer_to_two();
  blocked(four);
  pass(1s);
  renew(four);
  pass(1s);
  blocked(five);
  EXPECT_EQ(pushes(), said{"granted 4"});
  EXPECT_EQ(renew(three).state, spi::hold_state::waiting);
  leave(four);
  EXPECT_EQ(pushes(), said{"granted 3"});
}

TEST_F(ledger_offer, where_no_waiter_was_heard_since_the_first_to_ask_is_granted_by_its_answer) {
  const auto four = make_claim(4, fair());
  offer_to_two();
  blocked(four);
  pass(5s);
  EXPECT_EQ(holders(), 0U);
  EXPECT_EQ(pushes(), said{});
  EXPECT_EQ(renew(four).state, spi::hold_state::renewed);
  EXPECT_EQ(pushes(), said{});
}

// Frozen waiters must not keep a newcomer out, and are not overtaken by it once they are heard
// from.
TEST_F(ledger_offer, a_newcomer_takes_what_only_silent_ones_wait_for) {
  const auto four = make_claim(4, fair());
  offer_to_two();
  pass(2s);
  EXPECT_FALSE(granted(four).offer);
  renew(three);
  leave(four);
  EXPECT_EQ(pushes(), (said{"granted 3"}));
}

// That one claim was revoked before it accepted its offer says nothing about the others.
TEST_F(ledger_offer, a_revoked_offer_silences_nobody) {
  const auto four = make_claim(4, fair());
  offer_to_two();
  book.revoke(now, {"", "stock"}, spi::revocation::safe, "", out);
  pushes();
  pass(2s);
  blocked(four);
  EXPECT_EQ(pushes(), (said{"granted 3", "wanted 3"}));
}

TEST_F(ledger_offer, a_waiter_that_finds_its_own_offer_ended_counts_as_heard) {
  offer_to_two();
  pass(1s);
  renew(three);
  pass(1s);
  // Granted to three by this very step; two is back in the queue, and is served after it.
  EXPECT_TRUE(blocked(two).queued);
  EXPECT_EQ(pushes(), (said{"granted 3", "wanted 3"}));
  leave(three);
  EXPECT_EQ(pushes(), said{"granted 2"});
}

TEST_F(ledger_offer, a_holder_that_leaves_within_its_offer_needs_no_renewal) {
  offer_to_two();
  EXPECT_EQ(leave(two), spi::departure::was_holder);
  EXPECT_EQ(pushes(), said{"granted 3"});
}

}  // namespace holdfast::memory
