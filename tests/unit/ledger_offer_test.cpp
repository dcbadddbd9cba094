// Pushed grants: an offer until the process is heard, and what becomes of one that is not taken.
#include "ledger_harness.hpp"

namespace holdfast::memory {

class ledger_offer : public ledger_harness {
 protected:
  // One holds, two and three wait, fair; then one leaves and two is offered it.
  void offer_to_two(const wish& second = fair()) {
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
  pass(2s);
  blocked(make_claim(4, fair()));
  EXPECT_EQ(pushes(), (said{"granted 3", "wanted 3"}));
  EXPECT_EQ(renew(two).state, spi::hold_state::lost);
}

TEST_F(ledger_offer, a_silent_process_is_passed_over_until_it_is_heard) {
  const process_id paused = 50;
  const auto four = make_claim(4, fair()), five = make_claim(5, fair()),
             six = make_claim(6, fair());
  granted(one);
  ASSERT_TRUE(attempt(two, paused).has_value());
  ASSERT_TRUE(attempt(three, paused).has_value());
  blocked(four);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 50"});
  pass(2s);
  blocked(five);
  EXPECT_EQ(pushes(), said{"granted 4"});
  leave(four);
  EXPECT_EQ(pushes(), said{"granted 5"});
  // Heard on another name: its claim here is served again, in its old place.
  ASSERT_TRUE(attempt(make_claim(7, {.name = "other"}), paused).has_value());
  blocked(six);
  pushes();
  leave(five);
  EXPECT_EQ(pushes(), said{"granted 50"});
}

// The end of an offer is seen by the next verb on its resource; that must not undo what was heard
// meanwhile, or a live waiter would lose its turn.
TEST_F(ledger_offer, who_spoke_after_its_offer_had_ended_is_not_passed_over) {
  const process_id slow = 50;
  granted(one);
  ASSERT_TRUE(attempt(two, slow).has_value());
  ASSERT_TRUE(attempt(three, slow).has_value());
  blocked(make_claim(4, fair()));
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 50"});
  pass(3s);
  ASSERT_TRUE(attempt(make_claim(7, {.name = "other"}), slow).has_value());
  pass(1s);
  blocked(make_claim(5, fair()));
  EXPECT_EQ(pushes(), said{"granted 50"});
}

TEST_F(ledger_offer, who_finds_its_own_offer_ended_is_not_silent) {
  offer_to_two();
  pass(2s);
  // Granted to three by this very step; two is back in line, and is served after it.
  EXPECT_TRUE(blocked(two).queued);
  EXPECT_EQ(pushes(), (said{"granted 3", "wanted 3"}));
  leave(three);
  EXPECT_EQ(pushes(), said{"granted 2"});
}

TEST_F(ledger_offer, one_offer_per_silent_process_not_one_per_waiter) {
  const process_id dead = 50;
  granted(one);
  for (std::uint64_t i = 100; i < 200; ++i) {
    ASSERT_TRUE(attempt(make_claim(i, fair()), dead).has_value());
  }
  blocked(two);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 50"});
  pass(2s);
  EXPECT_FALSE(granted(two).offer);
}

TEST_F(ledger_offer, a_holder_that_leaves_within_its_offer_needs_no_renewal) {
  offer_to_two();
  EXPECT_EQ(leave(two), spi::departure::was_holder);
  EXPECT_EQ(pushes(), said{"granted 3"});
}

}  // namespace holdfast::memory
