// A quorum: what a minority may do, what is left behind, how fences grow.
#include "unit/quorum_harness.hpp"

#include <algorithm>

namespace holdfast::quorum {
namespace {

TEST_F(quorum_of_five, a_grant_holds_at_all_members_and_a_release_frees_them) {
  // Broken: a release leaves something behind that keeps the next one out.
  client a = join(hubs);
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  EXPECT_THAT(holders(), testing::Each(1U));
  EXPECT_EQ(leave(a, claim).value(), spi::departure::was_holder);
  EXPECT_THAT(holders(), testing::Each(0U));
}

TEST_F(quorum_of_five, two_dead_members_change_nothing) {
  // Broken: the quorum does not tolerate the failures that it exists for.
  client a = join(hubs);
  client b = join(hubs);
  for (client* each : {&a, &b}) {
    each->ways[1]->set(trouble::no_request);
    each->ways[4]->set(trouble::no_request);
  }
  ASSERT_TRUE(granted(a, claim_of(1)));
  EXPECT_TRUE(blocked(b, claim_of(2)));
  EXPECT_EQ(renew(a, claim_of(1)), spi::hold_state::renewed);
  EXPECT_EQ(leave(a, claim_of(1)).value(), spi::departure::was_holder);
  EXPECT_TRUE(granted(b, claim_of(2)));
}

TEST_F(quorum_of_five, with_three_dead_nothing_is_granted_and_nothing_is_left) {
  // Broken: a minority grants (H54), or its leftovers lock everybody out when the others are back (H11).
  client a = join(hubs);
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::no_request);
  const auto answer = attempt(a, claim_of(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::unavailable);
  EXPECT_THAT(holders(), testing::Each(0U));
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::none);
  EXPECT_TRUE(granted(a, claim_of(1)));
}

TEST_F(quorum_of_five, a_grant_whose_answers_were_lost_is_cleaned_up_behind_the_scenes) {
  // Broken: members that granted without being heard stay locked for a whole ttl (H11).
  client a = join(hubs);
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::no_answer, 1);
  const auto answer = attempt(a, claim_of(1));
  EXPECT_FALSE(answer);
  runtime->run_for(5s);
  EXPECT_THAT(holders(), testing::Each(0U));
}

TEST_F(quorum_of_five, the_next_round_of_a_claim_is_not_stopped_by_what_it_left_behind) {
  // Broken: an id that was withdrawn with a tombstone never gets those members' votes again.
  client a = join(hubs);
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::no_answer, 1);
  EXPECT_FALSE(attempt(a, claim_of(1)));
  ASSERT_TRUE(granted(a, claim_of(1)));
  EXPECT_THAT(holders(), testing::Each(1U));
}

TEST_F(quorum_of_five, fences_grow_though_majorities_change) {
  // Broken: the majorities {0,1,2} and {2,3,4} give the same fence, or a smaller one (H13).
  client a = join(hubs);
  client b = join(hubs);
  std::uint64_t last = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    client& now = round % 2 == 0 ? a : b;
    const std::size_t first = round % 3;
    for (std::size_t i = 0; i < member_count; ++i) {
      const bool out = i == first || i == first + 2;
      now.ways[i]->set(out ? trouble::no_request : trouble::none);
    }
    const auto claim = claim_of(10 + round);
    const auto grant = granted(now, claim);
    ASSERT_TRUE(grant) << round;
    EXPECT_GT(grant->fence.value(), last + (last == 0 ? 0 : 32)) << "33 numbers were reserved";
    last = grant->fence.value();
    ASSERT_TRUE(leave(now, claim));
  }
}

TEST_F(quorum_of_five, a_server_listed_twice_is_refused) {
  // Broken: one server has two votes (H54).
  auto twice = hubs;
  twice[3] = twice[1];
  client a = join(twice);
  // Whether the first is granted depends on which members answer first: it has a majority of the
  // others then.
  static_cast<void>(attempt(a, claim_of(1)));
  ASSERT_TRUE(leave(a, claim_of(1)));
  const auto answer = attempt(a, claim_of(2));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::invalid);
  EXPECT_THAT(holders(), testing::Each(0U));
}

TEST_F(quorum_of_five, a_member_that_forgot_is_topped_up_by_renewals) {
  // Broken: after two restarts in the life of a lease the third is its loss (H56).
  client a = join(hubs);
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  for (const std::size_t member : {0U, 3U, 1U, 2U, 4U}) {
    forget(member);
    ASSERT_EQ(renew(a, claim), spi::hold_state::renewed);
    EXPECT_EQ(holders_at(member), 1U) << "asked again with the renewal that missed it";
  }
}

TEST_F(quorum_of_five, a_lease_that_a_majority_forgot_is_lost_at_once) {
  // Broken: its holder continues until its ttl beside the next one.
  client a = join(hubs);
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  for (const std::size_t member : {0U, 1U, 2U}) forget(member);
  EXPECT_EQ(renew(a, claim), spi::hold_state::lost);
  EXPECT_THAT(holders(), testing::Each(0U)) << "and what is left of it is taken back";
}

TEST_F(quorum_of_five, silence_is_neither_renewal_nor_loss) {
  // Broken: a cut of three members for a second loses the lease, or prolongs it.
  client a = join(hubs);
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::no_request);
  EXPECT_EQ(renew(a, claim), spi::hold_state::unknown);
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::none);
  EXPECT_EQ(renew(a, claim), spi::hold_state::renewed);
}

TEST_F(quorum_of_five, a_release_goes_on_at_members_that_were_away) {
  // Broken: a member that was unreachable during a release is locked until the ttl.
  client a = join(hubs);
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  a.ways[2]->set(trouble::no_request);
  EXPECT_EQ(leave(a, claim).value(), spi::departure::was_holder);
  a.ways[2]->set(trouble::none);
  runtime->run_for(5s);
  EXPECT_THAT(holders(), testing::Each(0U));
}

TEST_F(quorum_of_five, one_silent_member_costs_no_time) {
  // Broken: the slowest member sets the pace.
  client a = join(hubs);
  a.ways[2]->set(trouble::silence);
  bool answered = false;
  a.store->attempt(claim_of(1), nullptr, soon(),
                   [&](const result<spi::outcome>& answer) { answered = answer.has_value(); });
  EXPECT_TRUE(answered) << "before any time has passed";
}

TEST_F(quorum_of_five, doctor_says_what_an_even_number_is_worth) {
  // Broken: an operator runs a fourth server that adds nothing.
  hubs.pop_back();
  client a = join(hubs);
  std::vector<spi::check> seen;
  a.store->probe(soon(), [&](result<std::vector<spi::check>> checks) { seen = *checks; });
  EXPECT_TRUE(std::any_of(seen.begin(), seen.end(), [](const spi::check& each) {
    return each.name == "members" && each.state == spi::check::status::warn;
  }));
}

TEST_F(quorum_of_five, a_split_vote_beside_silent_members_is_over_at_once_the_second_time) {
  // Broken: with two of five down, sixteen clients keep one another from a majority forever (H57).
  class deaf final : public spi::wakeup {
    void notify(std::optional<spi::granted>) noexcept override {}
    void wanted() noexcept override {}
    void gone(const error&) noexcept override {}
  };
  const client a = join(hubs);
  memory_store minority(runtime, hubs[0]);
  minority.attempt(claim_of(9), std::make_shared<deaf>(), soon(), [](const auto&) {});
  a.ways[3]->set(trouble::silence);
  a.ways[4]->set(trouble::silence);
  EXPECT_TRUE(blocked(a, claim_of(1)));
  std::optional<result<spi::outcome>> answer;
  a.store->attempt(claim_of(2), nullptr, soon(), [&](result<spi::outcome> got) { answer = got; });
  ASSERT_TRUE(answer) << "no time has passed";
  EXPECT_TRUE(*answer && std::holds_alternative<spi::blocked>(**answer));
  EXPECT_THAT(holders(), testing::ElementsAre(1U, 0U, 0U, 0U, 0U));
  a.ways[3]->set(trouble::none);
  a.ways[4]->set(trouble::none);
  EXPECT_TRUE(granted(a, claim_of(3))) << "they are counted again once they answer";
}

}  // namespace
}  // namespace holdfast::quorum
