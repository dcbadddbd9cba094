// The ballot by hand: five members, their answers in any order, no clock and no network.
#include "stores/quorum/ballot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::quorum {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::size_t members = 5;

result<spi::outcome> yes(std::uint64_t fence, duration ttl = 10s) {
  return spi::outcome(spi::granted{.fence = fence_token(fence), .ttl = ttl});
}
result<spi::outcome> no(duration recheck_after = 1s) {
  spi::blocked blocked;
  blocked.recheck_after = recheck_after;
  blocked.blocker = "another";
  return spi::outcome(blocked);
}
result<spi::outcome> silence() { return failure(errc::unavailable, "no answer"); }
result<spi::granted> written(std::uint64_t fence, duration ttl = 10s) {
  return spi::granted{.fence = fence_token(fence), .ttl = ttl};
}

class quorum_ballot : public testing::Test {
 protected:
  void ask_all() {
    for (std::size_t i = 0; i < members; ++i) EXPECT_TRUE(vote.ask(i));
  }
  // Feeds the answers of members 0, 1, ...; returns the orders after the last one.
  ballot::orders answer(const std::vector<result<spi::outcome>>& answers) {
    ballot::orders last;
    for (std::size_t i = 0; i < answers.size(); ++i) last = vote.answered(i, answers[i]);
    return last;
  }
  static std::optional<spi::granted> grant_in(const ballot::orders& todo) {
    if (!todo.settle || !*todo.settle) return std::nullopt;
    const auto* grant = std::get_if<spi::granted>(&**todo.settle);
    return grant == nullptr ? std::nullopt : std::optional(*grant);
  }
  static errc error_in(const ballot::orders& todo) {
    return todo.settle && !*todo.settle ? todo.settle->error().code : errc{};
  }

  ballot vote{members};
};

TEST_F(quorum_ballot, a_majority_with_one_fence_grants_in_one_round_trip) {
  // Broken: every quorum lock costs two round trips, or waits for the slowest member.
  ask_all();
  EXPECT_FALSE(answer({yes(7), yes(7)}).settle);
  const auto todo = vote.answered(2, yes(7));
  ASSERT_TRUE(grant_in(todo));
  EXPECT_EQ(grant_in(todo)->fence, fence_token(7));
  EXPECT_THAT(todo.raise, IsEmpty());
}

TEST_F(quorum_ballot, two_of_five_are_no_majority_though_nobody_else_answers) {
  // Broken: two sides of a cut both hold (a majority of the reachable).
  ask_all();
  const auto todo = answer({yes(7), yes(7), silence(), silence(), silence()});
  EXPECT_EQ(error_in(todo), errc::unavailable);
}

TEST_F(quorum_ballot, two_of_four_are_a_tie_and_a_tie_is_a_failure) {
  // Broken: with an even number two clients both hold, or the vote never ends.
  ballot even{4};
  for (std::size_t i = 0; i < 4; ++i) even.ask(i);
  even.answered(0, yes(1));
  even.answered(1, yes(1));
  const auto todo = even.answered(2, no());
  EXPECT_FALSE(todo.settle);
  EXPECT_TRUE(even.answered(3, no()).settle);
  EXPECT_EQ(even.where(), ballot::phase::failed);
}

TEST_F(quorum_ballot, the_greatest_fence_is_written_back_before_it_is_reported) {
  // Broken: the next grant, by another majority, gets a smaller fence (H13).
  ask_all();
  auto todo = answer({yes(5), yes(9), yes(7)});
  EXPECT_FALSE(todo.settle);
  EXPECT_THAT(todo.raise, UnorderedElementsAre(0, 2));
  EXPECT_FALSE(vote.raised(0, written(9)).settle);
  todo = vote.raised(2, written(9));
  ASSERT_TRUE(grant_in(todo));
  EXPECT_EQ(grant_in(todo)->fence, fence_token(9));
}

TEST_F(quorum_ballot, a_write_back_does_not_count_where_the_claim_holds_no_more) {
  // Broken: fences acknowledged by any majority, which is known to be too weak.
  ask_all();
  answer({yes(5), yes(9), yes(7), no(), no()});
  vote.raised(0, written(9));
  const auto todo = vote.raised(2, failure(errc::lost, "not held here"));
  EXPECT_TRUE(todo.settle);
  EXPECT_EQ(vote.where(), ballot::phase::failed);
  EXPECT_THAT(todo.leave, testing::IsSupersetOf({0U, 1U}));
}

TEST_F(quorum_ballot, an_unanswered_write_back_is_no_vote) {
  // Broken: unknown is taken for success.
  ask_all();
  answer({yes(5), yes(9), yes(7), no(), no()});
  vote.raised(0, written(9));
  EXPECT_EQ(error_in(vote.raised(2, failure(errc::unavailable, ""))), errc{});
  EXPECT_EQ(vote.where(), ballot::phase::failed);
}

TEST_F(quorum_ballot, a_late_member_that_has_the_fence_completes_the_write_back) {
  // Broken: one slow write-back delays a grant that a majority has already.
  ask_all();
  answer({yes(5), yes(9), yes(9)});
  const auto todo = vote.answered(3, yes(9));
  ASSERT_TRUE(grant_in(todo));
  EXPECT_EQ(grant_in(todo)->fence, fence_token(9));
}

TEST_F(quorum_ballot, a_member_that_lost_its_state_does_not_count) {
  // Broken: a member that restarted empty gives a held lock to a second client (H55).
  ask_all();
  result<spi::outcome> young = yes(7);
  std::get<spi::granted>(*young).counts_after = 3s;
  EXPECT_FALSE(answer({yes(7), yes(7), young}).settle);
  const auto todo = [&] {
    vote.answered(3, silence());
    return vote.answered(4, silence());
  }();
  EXPECT_EQ(error_in(todo), errc::unavailable);
  EXPECT_THAT(todo.settle->error().detail, testing::HasSubstr("within 3 s"));
  EXPECT_THAT(todo.leave, UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST_F(quorum_ballot, a_server_that_is_listed_twice_is_refused) {
  // Broken: three answers of two servers are taken for a majority of three (H54).
  ask_all();
  const auto from = [](std::uint64_t server) {
    result<spi::outcome> answer = yes(7);
    std::get<spi::granted>(*answer).server = server;
    return answer;
  };
  const auto todo = answer({from(1), from(2), from(1)});
  EXPECT_EQ(error_in(todo), errc::invalid);
}

TEST_F(quorum_ballot, validity_is_that_of_the_shortest_counted_vote) {
  // Broken: a hold is valid for longer than at the member where it ends first.
  ask_all();
  const auto todo = answer({yes(7, 10s), yes(7, 4s), yes(7, 9s)});
  ASSERT_TRUE(grant_in(todo));
  EXPECT_EQ(grant_in(todo)->ttl, 4s);
}

TEST_F(quorum_ballot, a_failed_round_leaves_every_member_that_has_it_or_may_have_it) {
  // Broken: minority grants stay until their ttl and keep others out (H11).
  ask_all();
  const auto todo = answer({yes(7), no(), silence(), no()});
  ASSERT_TRUE(todo.settle && *todo.settle);
  EXPECT_TRUE(std::holds_alternative<spi::blocked>(**todo.settle));
  EXPECT_THAT(todo.leave, UnorderedElementsAre(0, 2, 4));
}

TEST_F(quorum_ballot, it_fails_as_soon_as_no_majority_is_possible) {
  // Broken: a held lock is reported busy only after the slowest member has answered.
  ask_all();
  const auto todo = answer({no(), no(), no()});
  EXPECT_TRUE(todo.settle);
  EXPECT_THAT(todo.leave, UnorderedElementsAre(3, 4)) << "asked, and perhaps granting right now";
}

TEST_F(quorum_ballot, members_not_asked_yet_are_not_asked_after_the_end) {
  // Broken: members that answer at once get claims of a finished round.
  for (std::size_t i = 0; i < 3; ++i) {
    vote.ask(i);
    vote.answered(i, no());
  }
  EXPECT_FALSE(vote.ask(3));
}

TEST_F(quorum_ballot, a_split_vote_is_contention_with_nothing_to_wait_for) {
  // Broken: two clients that split the members wait for each other's full lease.
  ask_all();
  const auto todo = answer({yes(7), yes(7), no(30s), no(30s), silence()});
  ASSERT_TRUE(todo.settle && *todo.settle);
  EXPECT_EQ(std::get<spi::blocked>(**todo.settle).recheck_after, duration{0});
}

TEST_F(quorum_ballot, a_split_vote_does_not_wait_for_members_that_were_silent_before) {
  // Broken: with two members down, a claim that has one of the three others keeps it for as long as the
  // silence lasts; among many clients nobody ever gets all three (H57).
  ask_all();
  EXPECT_FALSE(answer({yes(7), no(30s), no(30s)}).settle) << "the two others could be a majority";
  EXPECT_FALSE(vote.not_waiting_for({false, false, false, false, true}).settle);
  const auto todo = vote.not_waiting_for({false, false, false, true, true});
  ASSERT_TRUE(todo.settle && *todo.settle);
  EXPECT_TRUE(std::holds_alternative<spi::blocked>(**todo.settle));
  EXPECT_THAT(todo.leave, UnorderedElementsAre(0, 3, 4)) << "they may have it all the same";
}

TEST_F(quorum_ballot, a_majority_that_was_silent_before_is_waited_for) {
  // Broken: after an outage the first try is told "unavailable" although all members are back.
  ask_all();
  EXPECT_FALSE(answer({yes(7), yes(7)}).settle);
  EXPECT_FALSE(vote.not_waiting_for({true, true, true, true, true}).settle);
  EXPECT_FALSE(vote.not_waiting_for({false, false, true, true, true}).settle);
  EXPECT_TRUE(grant_in(vote.answered(4, yes(7))));
}

TEST_F(quorum_ballot, a_refusal_by_a_majority_is_the_answer) {
  // Broken: a wrong password looks like an outage, and is retried forever.
  ask_all();
  const result<spi::outcome> denied = failure(errc::denied, "ACL");
  EXPECT_EQ(error_in(answer({denied, yes(7), denied, denied})), errc::denied);
}

TEST_F(quorum_ballot, a_missing_member_is_topped_up_while_it_is_granted) {
  // Broken: a grant by exactly a majority dies with the next member (H56).
  ask_all();
  answer({yes(7), yes(7), yes(7), silence(), no()});
  EXPECT_EQ(vote.margin(), 3U);
  EXPECT_FALSE(vote.top_up(0));
  ASSERT_TRUE(vote.top_up(3));
  ASSERT_TRUE(vote.top_up(4));
  EXPECT_THAT(vote.answered(3, yes(8)).raise, IsEmpty());
  EXPECT_THAT(vote.answered(4, yes(6)).raise, ElementsAre(4)) << "its next fence could be 7";
  vote.raised(4, written(7));
  EXPECT_EQ(vote.margin(), 5U);
}

TEST_F(quorum_ballot, an_answer_after_the_end_of_the_round_changes_nothing) {
  // Broken: a grant of an earlier round counts in a later one.
  ask_all();
  answer({no(), no(), no()});
  const auto todo = vote.answered(3, yes(7));
  EXPECT_FALSE(todo.settle);
  EXPECT_EQ(vote.where(), ballot::phase::failed);
}

TEST_F(quorum_ballot, a_claim_that_is_given_up_is_left_everywhere) {
  // Broken: a cancelled acquisition holds at the members that had granted it.
  ask_all();
  answer({yes(7), yes(7)});
  const auto todo = vote.end({errc::cancelled, ""});
  EXPECT_EQ(error_in(todo), errc::cancelled);
  EXPECT_THAT(todo.leave, UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(vote.end({errc::cancelled, ""}).settle);
}

}  // namespace
}  // namespace holdfast::quorum
