// Members that report by themselves that they took a claim away: one proves nothing, many are
// trusted.
#include "stores/quorum/ballot.hpp"
#include "unit/quorum_harness.hpp"

#include <utility>

namespace holdfast::quorum {
namespace {

// The holder's vote listener.
class listener final : public spi::wakeup {
 public:
  void notify(std::optional<spi::granted>) noexcept override {}
  void wanted() noexcept override {}
  void gone(const error& why) noexcept override {
    EXPECT_EQ(why, errc::lost);
    ++told_;
  }
  [[nodiscard]] int told() const noexcept { return told_; }

 private:
  int told_ = 0;
};

class quorum_pushes : public quorum_of_five {
 protected:
  // Granted to `a`, which listens.
  void hold(const spi::claim_ptr& claim) {
    bool granted = false;
    a.store->attempt(claim, vote_listener, soon(), [&](const result<spi::outcome>& answer) {
      granted = answer && std::holds_alternative<spi::granted>(*answer);
    });
    runtime->run_for(1ms);
    ASSERT_TRUE(granted);
  }
  void take_away_at(std::size_t member, spi::revocation how = spi::revocation::force) {
    memory_store operators(runtime, hubs[member]);
    operators.revoke({"", "stock"}, how, "", soon(), [](const auto& taken) { EXPECT_TRUE(taken); });
    runtime->run_for(1ms);
  }
  void take_away(spi::revocation how) {
    join(hubs).store->revoke({"", "stock"}, how, "", soon(),
                             [](const auto& taken) { EXPECT_TRUE(taken); });
    runtime->run_for(1ms);
  }

  client a = join(hubs);
  const std::shared_ptr<listener> vote_listener = std::make_shared<listener>();
};

TEST_F(quorum_pushes, a_forced_release_is_notified_at_once) {
  // Broken: two holders run for a third of the ttl although every member has reported it.
  hold(claim_of(1));
  take_away(spi::revocation::force);
  EXPECT_EQ(vote_listener->told(), 1);
  EXPECT_TRUE(granted(join(hubs), claim_of(2)));
  EXPECT_EQ(vote_listener->told(), 1) << "once";
}

TEST_F(quorum_pushes, a_safe_revocation_is_notified_at_once_and_admits_nobody) {
  // Broken: the holder is not notified before its lease ends; or it is withdrawn and the next one
  // is granted.
  hold(claim_of(1));
  take_away(spi::revocation::safe);
  EXPECT_EQ(vote_listener->told(), 1);
  EXPECT_TRUE(blocked(join(hubs), claim_of(2)));
  EXPECT_THAT(holders(), testing::Each(1U));
  runtime->run_for(61s);
  EXPECT_TRUE(granted(join(hubs), claim_of(3)));
}

TEST_F(quorum_pushes, a_holder_that_stops_after_a_safe_revocation_frees_it) {
  // Broken: the lock stays idle for the rest of the ttl.
  const auto claim = claim_of(1);
  hold(claim);
  take_away(spi::revocation::safe);
  EXPECT_EQ(leave(a, claim).value(), spi::departure::was_holder);
  EXPECT_TRUE(granted(join(hubs), claim_of(2)));
}

TEST_F(quorum_pushes, what_a_majority_took_by_force_was_not_released) {
  // Broken: members that have not heard of the loss yet make the release of a lost lease succeed.
  const auto claim = claim_of(1);
  hold(claim);
  for (const std::size_t member : {2U, 3U, 4U}) take_away_at(member);
  ASSERT_EQ(vote_listener->told(), 1);
  EXPECT_EQ(leave(a, claim).value(), spi::departure::gone);
}

TEST_F(quorum_pushes, a_minority_ends_nothing) {
  // Broken: anyone who can harm one server takes the lock from everybody.
  const auto claim = claim_of(1);
  hold(claim);
  take_away_at(2);
  take_away_at(4);
  EXPECT_EQ(vote_listener->told(), 0);
  EXPECT_EQ(renew(a, claim), spi::hold_state::renewed);
  EXPECT_THAT(holders(), testing::Each(1U)) << "topped up";
  EXPECT_EQ(vote_listener->told(), 0);
}

TEST_F(quorum_pushes, a_revocation_by_a_minority_shortens_nothing) {
  // Broken: the rest of the time at one revoked member, which nothing prolongs, was that of the lease.
  const auto claim = claim_of(1);
  hold(claim);
  take_away_at(0, spi::revocation::safe);
  take_away_at(3, spi::revocation::safe);
  runtime->run_for(20s);
  const auto answer = renewal(a, claim);
  EXPECT_EQ(answer.state, spi::hold_state::renewed);
  EXPECT_EQ(answer.grant.ttl, 60s);
  EXPECT_EQ(vote_listener->told(), 0);
}

TEST_F(quorum_pushes, what_is_left_at_a_revoked_member_counts_where_others_are_silent) {
  // Broken: one that was revoked and two that are down end a lease that a majority has.
  const auto claim = claim_of(1);
  hold(claim);
  take_away_at(0, spi::revocation::safe);
  for (const std::size_t i : {1U, 2U}) a.ways[i]->set(trouble::no_request);
  runtime->run_for(20s);
  const auto answer = renewal(a, claim);
  EXPECT_EQ(answer.state, spi::hold_state::renewed);
  EXPECT_GT(answer.grant.ttl, 30s);
  EXPECT_LE(answer.grant.ttl, 40s);
}

TEST_F(quorum_pushes, a_revocation_by_a_majority_is_seen_by_a_renewal) {
  // Broken: if its notifications are lost, its holder considers the lease renewed.
  const auto claim = claim_of(1);
  ASSERT_TRUE(granted(a, claim));
  for (const std::size_t i : {0U, 2U, 4U}) take_away_at(i, spi::revocation::safe);
  EXPECT_EQ(renew(a, claim), spi::hold_state::held);
}

TEST_F(quorum_pushes, a_majority_is_trusted_without_a_look) {
  // Broken: because a member hangs, the holder keeps considering itself valid.
  hold(claim_of(1));
  for (const auto& way : a.ways) way->set(trouble::silence);
  take_away_at(0);
  take_away_at(3);
  EXPECT_EQ(vote_listener->told(), 0);
  take_away_at(4);
  EXPECT_EQ(vote_listener->told(), 1);
}

TEST_F(quorum_pushes, what_was_refuted_does_not_add_up) {
  // Broken: three members that were each put right again end a lease that all of them hold.
  const auto claim = claim_of(1);
  hold(claim);
  for (const std::size_t member : {0U, 1U, 2U, 3U, 4U}) {
    take_away_at(member);
    ASSERT_EQ(renew(a, claim), spi::hold_state::renewed);
  }
  EXPECT_EQ(vote_listener->told(), 0);
  EXPECT_THAT(holders(), testing::Each(1U));
}

TEST_F(quorum_pushes, one_push_is_a_reason_to_look) {
  // Broken: exactly a majority held; one of it says that it took the claim away, and nobody asks.
  for (const std::size_t i : {0U, 1U}) a.ways[i]->set(trouble::no_request);
  hold(claim_of(1));
  for (const std::size_t i : {0U, 1U}) {
    memory_store others(runtime, hubs[i]);
    others.attempt(claim_of(9), std::make_shared<listener>(), soon(), [](const auto&) {});
    a.ways[i]->set(trouble::none);
  }
  EXPECT_EQ(renew(a, claim_of(1)),
            spi::hold_state::renewed);  // and asks the two others, which do not answer
  forget(3);
  forget(4);
  take_away_at(2);
  EXPECT_EQ(vote_listener->told(), 1);
}

TEST_F(quorum_pushes, a_claim_that_was_asked_for_twice_hears_it_too) {
  // Broken: after lost answers the members know it by another id, and what they push finds nobody.
  for (const std::size_t i : {2U, 3U, 4U}) a.ways[i]->set(trouble::no_answer, 1);
  EXPECT_FALSE(attempt(a, claim_of(1)));
  hold(claim_of(1));
  take_away(spi::revocation::force);
  EXPECT_EQ(vote_listener->told(), 1);
}

TEST_F(quorum_pushes, a_claim_that_has_left_is_not_notified) {
  // Broken: lost() fires after the release (G3.5).
  const auto claim = claim_of(1);
  hold(claim);
  EXPECT_EQ(leave(a, claim).value(), spi::departure::was_holder);
  take_away(spi::revocation::force);
  EXPECT_EQ(vote_listener->told(), 0);
}

TEST_F(quorum_pushes, what_is_left_of_a_grant_that_came_too_late_does_not_end_the_next) {
  // Broken: the core asks again for what it was granted, members are silent, and what is withdrawn from
  // them in the background takes away what they grant to the same claim a moment later.
  const auto claim = claim_of(1);
  hold(claim);
  for (const std::size_t i : {0U, 1U, 2U}) a.ways[i]->set(trouble::no_request);
  std::optional<result<spi::outcome>> again;
  a.store->attempt(claim, vote_listener, soon(),
                   [&](result<spi::outcome> answer) { again = answer; });
  ASSERT_TRUE(again);
  EXPECT_EQ(again->error(), errc::unavailable);
  for (const auto& way : a.ways) way->set(trouble::none);
  for (std::size_t i = 0; i < member_count; ++i) forget(i);  // the first grant has run out
  hold(claim);
  runtime->run_for(5s);
  EXPECT_THAT(holders(), testing::Each(1U));
}

TEST(quorum_revocation_votes, a_majority_of_members_decides_and_never_one_of_several) {
  // Broken: with two members one false report ends a lease.
  for (const auto& [members, needed] :
       {std::pair{1U, 1U}, {2U, 2U}, {3U, 2U}, {4U, 2U}, {5U, 3U}}) {
    revocation_votes heard(members);
    std::size_t count = 0;
    while (!heard.decide() && count < members) EXPECT_TRUE(heard.raise(count++, time_point(1s)));
    EXPECT_EQ(count, needed) << members;
  }
}

TEST(quorum_revocation_votes, only_what_was_asked_later_refutes) {
  // Broken: an answer in flight when the claim was taken away counts against it.
  revocation_votes heard(3);
  EXPECT_TRUE(heard.raise(1, time_point(5s)));
  EXPECT_FALSE(heard.raise(1, time_point(6s))) << "the same again";
  heard.refute(1, time_point(5s));
  EXPECT_TRUE(heard.any());
  heard.refute(1, time_point(5s) + 1ns);
  EXPECT_FALSE(heard.any());
}

}  // namespace
}  // namespace holdfast::quorum
