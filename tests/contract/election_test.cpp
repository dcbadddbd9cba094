// One leader, and everybody can learn who it is.
#include "contract/contract.hpp"

#include <unistd.h>

#include <mutex>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(elections);

// What an observer was notified of, in order.
class witness {
 public:
  auto callback() {
    return [this](const std::optional<leader_info>& leader) {
      const std::lock_guard lock(mutex_);
      told_.push_back(leader ? leader->id : "nobody");
    };
  }
  [[nodiscard]] std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  [[nodiscard]] bool last_is(const std::string& id) const {
    return eventually([&] {
      const auto all = told();
      return !all.empty() && all.back() == id;
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;  // guarded by mutex_
};

TEST_P(elections, one_of_many_leads_and_the_next_follows) {
  // Broken: two schedulers, or none.
  const client a = open();
  if (!elects(a)) return;
  const client b = open();
  election one(a, "scheduler", "host-1");
  election two(b, "scheduler", "host-2");
  auto first = one.campaign();
  ASSERT_THAT(first, succeeds());
  EXPECT_THAT(two.campaign({.wait = 0s}), fails_with(errc::busy));
  auto waits = in_thread([&] { return two.campaign({.wait = patience}); });
  ASSERT_TRUE(has_waiters(a, "scheduler", 1));
  const fence_token term = first->fence();
  ASSERT_THAT(first->release(), succeeds());
  auto second = waits.get();
  ASSERT_THAT(second, succeeds());
  EXPECT_GT(second->fence(), term);
}

TEST_P(elections, any_client_can_ask_for_the_leader) {
  // Broken: clients talk to yesterday's leader.
  const client a = open();
  if (!elects(a)) return;
  const client b = open();
  election one(a, "scheduler", "host-1");
  const election asks(b, "scheduler", "host-2");
  EXPECT_EQ(asks.leader().value(), std::nullopt);
  auto leads = one.campaign();
  ASSERT_THAT(leads, succeeds());
  const auto leader = asks.leader().value();
  ASSERT_TRUE(leader.has_value());
  EXPECT_EQ(leader->id, "host-1");
  EXPECT_EQ(leader->fence, leads->fence());
  EXPECT_EQ(leader->claim, leads->claim());
  ASSERT_THAT(leads->release(), succeeds());
  EXPECT_EQ(asks.leader().value(), std::nullopt);
}

TEST_P(elections, an_observer_is_notified_at_once_and_at_every_change) {
  // Broken: a proxy sends requests to a leader that resigned.
  const client a = open();
  if (!elects(a)) return;
  const client b = open();
  election one(a, "scheduler", "host-1");
  election two(a, "scheduler", "host-2");
  witness seen;
  auto leads = one.campaign();
  ASSERT_THAT(leads, succeeds());
  const election observer(b, "scheduler", "watches");
  auto watching = observer.observe(seen.callback());
  ASSERT_THAT(watching, succeeds());
  EXPECT_TRUE(seen.last_is("host-1"));
  EXPECT_EQ(seen.told().size(), 1U);
  ASSERT_THAT(leads->release(), succeeds());
  EXPECT_TRUE(seen.last_is("nobody"));
  leads = two.campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_TRUE(seen.last_is("host-2"));
  watching->reset();
  const auto before = seen.told().size();
  EXPECT_THAT(leads->release(), succeeds());
  leads = one.campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_EQ(seen.told().size(), before);
}

TEST_P(elections, the_latest_wins_over_those_in_between) {
  // Broken: a slow observer is shown the whole history instead of the present state.
  const client a = open();
  if (!elects(a)) return;
  const client b = open();
  flag entered;
  flag go_on;
  std::mutex guard;
  std::vector<std::string> told;  // guarded by guard
  const election observer(b, "scheduler", "watches");
  auto watching = observer.observe([&](const std::optional<leader_info>& leader) {
    {
      const std::lock_guard lock(guard);
      told.push_back(leader ? leader->id : "nobody");
    }
    entered.raise();
    EXPECT_TRUE(go_on.wait(4 * patience));
  });
  ASSERT_THAT(watching, succeeds());
  ASSERT_TRUE(entered.wait());
  for (int i = 0; i < 20; ++i) {
    election candidate(a, "scheduler", "host-" + std::to_string(i));
    ASSERT_THAT(candidate.campaign({.wait = patience}), succeeds());
  }
  election last(a, "scheduler", "last");
  const auto leads = last.campaign({.wait = patience});
  ASSERT_THAT(leads, succeeds());
  go_on.raise();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(guard);
    return told.back() == "last";
  }));
  const std::lock_guard lock(guard);
  EXPECT_EQ(told.front(), "nobody");
  EXPECT_LT(told.size(), 12U);
}

TEST_P(elections, a_report_that_throws_does_not_end_the_reports) {
  // Broken: after one exception, the observer never hears of a leader again.
  const client a = open();
  if (!elects(a)) return;
  witness seen;
  const election one(a, "scheduler", "host-1");
  bool first = true;
  auto watching = one.observe([&](const std::optional<leader_info>& leader) {
    seen.callback()(leader);
    if (std::exchange(first, false)) throw std::runtime_error("observer");
  });
  ASSERT_THAT(watching, succeeds());
  ASSERT_TRUE(seen.last_is("nobody"));
  election candidate(a, "scheduler", "host-2");
  const auto leads = candidate.campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_TRUE(seen.last_is("host-2"));
}

TEST_P(elections, a_lost_term_notifies_its_leader) {
  // Broken: a deposed leader continues to lead.
  client a = open();
  if (!elects(a)) return;
  election one(a, "scheduler", "host-1", told_soon);
  auto leads = one.campaign();
  ASSERT_THAT(leads, succeeds());
  flag stopped;
  const std::stop_callback on_lost(leads->lost(), [&] { stopped.raise(); });
  ASSERT_THAT(a.revoke("scheduler", revocation::force), succeeds());
  EXPECT_TRUE(stopped.wait());
  EXPECT_THAT(one.campaign({.wait = patience}), succeeds());
}

TEST_P(elections, an_id_is_short_and_fit_to_be_shown) {
  // Broken: an id with escape codes takes over an operator's terminal.
  const client a = open();
  if (!elects(a)) return;
  EXPECT_EQ(thrown_by([&] { election(a, "e", std::string(257, 'x')); }), "invalid");
  EXPECT_EQ(thrown_by([&] { election(a, "", "id"); }), "invalid");
  election odd(a, "e", "a\x1b[2Jb");
  EXPECT_EQ(odd.id(), "a?[2Jb");
  const auto leads = odd.campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_EQ(odd.leader().value()->id, "a?[2Jb");
  // Without an id, the name of this process.
  election anonymous(a, "f", "");
  const auto other = anonymous.campaign();
  ASSERT_THAT(other, succeeds());
  EXPECT_THAT(anonymous.leader().value()->id, testing::HasSubstr(std::to_string(getpid())));
}

}  // namespace
}  // namespace holdfast::test
