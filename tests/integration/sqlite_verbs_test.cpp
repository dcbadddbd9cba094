// The embedded store's verbs, on a real file, among the clients of one process.
#include "integration/sqlite_harness.hpp"
#include "support/also_longer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

// Releases what it is granted, at once and in the same call.
class passing_on final : public noting_wakeup {
 public:
  passing_on(const embedded_client& at, spi::claim_ptr claim) : at_(at), claim_(std::move(claim)) {}
  void notify(std::optional<spi::granted> grant) noexcept override {
    if (grant) {
      at_.store().leave(claim_, {.deadline = clock::now() + generous},
                        [](const result<departure>&) {});
    }
    noting_wakeup::notify(grant);
  }

 private:
  const embedded_client& at_;
  const spi::claim_ptr claim_;
};

TEST(sqlite_verbs, a_lock_goes_through_thousands_of_hands_at_once) {
  // Broken: each waiter that is let in lets the next one in inside its own call, until the stack
  // overflows.
  constexpr int waiters = 20'000;
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  ASSERT_TRUE(granted(client.attempt(holder)));
  std::vector<std::shared_ptr<passing_on>> all;
  for (int i = 0; i < waiters; ++i) {
    const auto claim = client.fair_claim();
    all.push_back(std::make_shared<passing_on>(client, claim));
    ASSERT_TRUE(queued(client.attempt(claim, all.back())));
  }
  EXPECT_EQ(client.leave(holder).value(), departure::was_holder);
  for (const auto& each : all) ASSERT_TRUE(each->is_granted());
  EXPECT_TRUE(client.inspect().holders.empty());
}

TEST(sqlite_verbs, a_free_lock_is_granted_and_a_held_one_is_waited_for) {
  // Broken: no exclusion at all, or a release that lets nobody in.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  const auto mine = first.claim();
  const auto theirs = second.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  const auto taken = first.attempt(mine);
  ASSERT_TRUE(granted(taken));
  EXPECT_EQ(std::get<spi::granted>(*taken).ttl, forever);
  EXPECT_FALSE(std::get<spi::granted>(*taken).offer);
  const auto waits = second.attempt(theirs, wakeup);
  ASSERT_TRUE(queued(waits));
  EXPECT_EQ(std::get<spi::blocked>(*waits).blocker, "host:1:test");
  EXPECT_EQ(first.leave(mine).value(), departure::was_holder);
  ASSERT_TRUE(wakeup->is_granted());
  EXPECT_GT(wakeup->grant()->fence.value(), fence(taken));
  EXPECT_TRUE(wakeup->grant()->offer);
  EXPECT_EQ(second.renew(theirs).state, hold_state::renewed);
  EXPECT_EQ(second.leave(theirs).value(), departure::was_holder);
}

TEST(sqlite_verbs, a_repeated_attempt_answers_where_the_claim_stands) {
  // Broken: an attempt that is repeated after a lost answer queues behind itself, or gets a fence
  // of its own.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto first = client.claim();
  const auto second = client.claim();
  const auto taken = client.attempt(first);
  EXPECT_EQ(fence(client.attempt(first)), fence(taken));
  ASSERT_TRUE(queued(client.attempt(second)));
  ASSERT_TRUE(queued(client.attempt(second)));
  EXPECT_EQ(client.inspect().waiters.size(), 1U);
  EXPECT_EQ(client.leave(second).value(), departure::was_waiting);
  EXPECT_EQ(client.leave(second).value(), departure::gone);
  EXPECT_EQ(client.leave(first).value(), departure::was_holder);
  EXPECT_EQ(client.leave(first).value(), departure::gone);
}

TEST(sqlite_verbs, a_try_is_never_queued) {
  // Broken: a claim that only tried is granted later, and nobody releases it.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  auto attempt = client.claim();
  attempt->queued = false;
  ASSERT_TRUE(granted(client.attempt(holder)));
  const auto answer = client.attempt(attempt);
  ASSERT_TRUE(answer);
  EXPECT_FALSE(granted(answer));
  EXPECT_FALSE(queued(answer));
  EXPECT_TRUE(client.inspect().waiters.empty());
  EXPECT_EQ(client.leave(holder).value(), departure::was_holder);
  EXPECT_TRUE(client.inspect().holders.empty());
}

TEST(sqlite_verbs, the_holder_is_notified_when_the_first_waits) {
  // Broken: local hand-over continues although another process waits.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  const auto holder = first.claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  const auto taken = first.attempt(holder, wakeup);
  EXPECT_FALSE(std::get<spi::granted>(*taken).wanted);
  const auto waiter = second.claim();
  ASSERT_TRUE(queued(second.attempt(waiter)));
  EXPECT_TRUE(wakeup->is_wanted());
  EXPECT_TRUE(first.renew(holder).grant.wanted);
}

TEST(sqlite_verbs, an_unfair_newcomer_takes_what_is_free_but_not_past_a_fair_waiter) {
  // Broken: a fair queue that is overtaken, or a free lock that is not granted on request.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  const auto waiter = client.fair_claim();
  auto passer = client.claim();
  passer->queued = false;
  ASSERT_TRUE(granted(client.attempt(holder)));
  ASSERT_TRUE(queued(client.attempt(waiter)));
  static_cast<void>(client.leave(holder));
  EXPECT_FALSE(granted(client.attempt(passer)));
  static_cast<void>(client.leave(waiter));
  EXPECT_TRUE(granted(client.attempt(passer)));
}

TEST(sqlite_verbs, a_lease_that_is_not_renewed_ends_by_time) {
  // Broken: --no-renew holds forever, or its end lets nobody in.
  const embedded_file file;
  const embedded_client client(file.path());
  EXPECT_TRUE(also_longer(150ms, [&](duration ttl) {
    const std::string name = "stock/" + std::to_string(ttl.count());
    auto once = client.claim(name);
    once->renewed = false;
    once->ttl = ttl;
    const auto begun = clock::now();
    const auto taken = client.attempt(once);
    EXPECT_TRUE(granted(taken));
    EXPECT_LE(std::get<spi::granted>(*taken).ttl, ttl);
    const auto asked = client.renew(once).state;
    const auto next = client.claim(name);
    const auto waits = client.attempt(next);
    if (!queued(waits)) return testing::AssertionFailure() << "it has ended already";
    EXPECT_EQ(asked, hold_state::held);
    EXPECT_LE(std::get<spi::blocked>(*waits).recheck_after, ttl);
    client.acquire(next);
    EXPECT_GE(clock::now() - begun, ttl);
    EXPECT_EQ(client.renew(once).state, hold_state::lost);
    EXPECT_EQ(client.leave(once).value(), departure::gone);
    return testing::AssertionSuccess();
  }));
}

TEST(sqlite_verbs, after_an_abnormal_end_the_lock_stays_blocked_for_its_delay) {
  // Broken: --lock-delay, on which resources without fences rely.
  const embedded_file file;
  const embedded_client client(file.path());
  auto once = client.claim();
  once->renewed = false;
  once->ttl = 100ms;
  once->lock_delay = 200ms;
  const auto begun = clock::now();
  ASSERT_TRUE(granted(client.attempt(once)));
  client.acquire(client.claim());
  EXPECT_GE(clock::now() - begun, 300ms);
}

TEST(sqlite_verbs, a_forced_release_notifies_the_holder_and_admits_the_next) {
  // Broken: break-glass frees nothing, or the holder never learns.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  const auto holder = first.claim();
  const auto waiter = second.fair_claim();
  const auto losing = std::make_shared<noting_wakeup>();
  const auto getting = std::make_shared<noting_wakeup>();
  const auto taken = first.attempt(holder, losing);
  ASSERT_TRUE(queued(second.attempt(waiter, getting)));
  EXPECT_TRUE(second.revoke(spi::revocation::force, "0123456789abcdef")->empty());
  const auto revoked = second.revoke(spi::revocation::force, spi::public_id(holder->id));
  ASSERT_EQ(revoked->size(), 1U);
  EXPECT_EQ(revoked->front().fence->value(), fence(taken));
  EXPECT_TRUE(losing->is_gone());
  EXPECT_TRUE(getting->is_granted());
  EXPECT_GT(getting->grant()->fence.value(), fence(taken));
  EXPECT_EQ(first.renew(holder).state, hold_state::lost);
  EXPECT_EQ(first.leave(holder).value(), departure::gone);
}

TEST(sqlite_verbs, a_safe_revocation_lets_nobody_in_before_the_lease_has_ended) {
  // Broken: two holders after a revocation that was meant to be safe.
  const embedded_file file;
  const embedded_client client(file.path());
  auto holder = client.claim();
  holder->ttl = 300ms;
  const auto losing = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(holder, losing)));
  const auto waiter = client.claim();
  ASSERT_TRUE(queued(client.attempt(waiter)));
  const auto begun = clock::now();
  ASSERT_EQ(client.revoke(spi::revocation::safe)->size(), 1U);
  EXPECT_TRUE(losing->is_gone());
  client.acquire(waiter);
  EXPECT_GE(clock::now() - begun, 300ms);
}

TEST(sqlite_verbs, leaving_a_revoked_lock_without_time_left_reports_nothing) {
  // Broken: a holder that did not confirm that it stopped lets others in, or its claim is kept here
  // forever.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  ASSERT_TRUE(granted(client.attempt(holder)));
  ASSERT_EQ(client.revoke(spi::revocation::safe)->size(), 1U);
  EXPECT_FALSE(client.leave(holder, -1s));
  EXPECT_EQ(client.inspect().holders.size(), 1U);
  EXPECT_EQ(client.leave(holder).value(), departure::gone);
  EXPECT_EQ(client.inspect().holders.size(), 1U);
}

TEST(sqlite_verbs, a_grant_reserves_fences_for_local_hand_overs) {
  // Broken: a fence that was used inside one process is given to another.
  const embedded_file file;
  const embedded_client client(file.path());
  auto many = client.claim();
  many->fence_block = 33;
  const auto first = client.attempt(many);
  static_cast<void>(client.leave(many));
  EXPECT_GE(fence(client.attempt(client.claim())), fence(first) + 33);
}

TEST(sqlite_verbs, names_are_bytes_and_namespaces_never_conflict) {
  // Broken: two locks that are one, by collation, padding, prefix or a NUL.
  const embedded_file file;
  const embedded_client client(file.path());
  const std::vector<spi::resource_id> all = {
      {"", "a"},
      {"", "A"},
      {"", "a "},
      {"", "a/b"},
      {"a", "b"},
      {"", "ab"},
      {"", "\u00e4"},
      {"", "a\u0308"},
      {"", std::string(512, 'x')},
      {"", "'; DROP TABLE claims"},
  };
  for (const auto& resource : all) {
    auto claim = client.claim();
    claim->resource = resource;
    EXPECT_TRUE(granted(client.attempt(claim))) << resource.space << " " << resource.name;
  }
  for (const auto& resource : all) {
    auto claim = client.claim();
    claim->resource = resource;
    claim->queued = false;
    EXPECT_FALSE(granted(client.attempt(claim))) << resource.space << " " << resource.name;
  }
  EXPECT_EQ(client.list("a").size(), 5U);
  EXPECT_EQ(client.list("", "a").size(), 1U);
}

TEST(sqlite_verbs, show_and_ls_list_holders_and_waiters_in_order) {
  // Broken: `holdfast show` and `ls` lie.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  std::vector<spi::claim_ptr> line;
  static_cast<void>(client.attempt(holder));
  for (int i = 0; i < 5; ++i) {
    line.push_back(client.fair_claim());
    static_cast<void>(client.attempt(line.back()));
  }
  const auto state = client.inspect();
  ASSERT_EQ(state.holders.size(), 1U);
  EXPECT_EQ(state.holders.front().claim, spi::public_id(holder->id));
  EXPECT_FALSE(state.holders.front().remaining.has_value());
  ASSERT_EQ(state.waiters.size(), line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    EXPECT_EQ(state.waiters[i].claim, spi::public_id(line[i]->id));
  }
  const auto all = client.list();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().holders, 1U);
  EXPECT_EQ(all.front().waiters, 5U);
}

TEST(sqlite_verbs, a_verb_on_the_reactors_own_thread_is_answered_from_another) {
  // Broken: a transaction blocks the thread that owns the timers, or its answer never comes.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto claim = client.claim();
  std::promise<bool> answered;
  client.reactor().post([&] {
    client.store().attempt(claim, std::make_shared<noting_wakeup>(),
                           embedded_client::within(generous), [&](result<spi::outcome> answer) {
                             EXPECT_TRUE(granted(answer));
                             answered.set_value(client.reactor().on_own_thread());
                           });
  });
  EXPECT_FALSE(answered.get_future().get());
  EXPECT_EQ(client.leave(claim).value(), departure::was_holder);
}

TEST(sqlite_verbs, verbs_of_one_claim_keep_their_order_across_threads) {
  // Broken: a withdrawal overtakes its attempt, and a claim remains that nobody will ever release.
  const embedded_file file;
  const embedded_client client(file.path());
  for (int i = 0; i < 200; ++i) {
    const auto claim = client.claim();
    std::promise<void> posted;
    client.reactor().post([&] {
      client.store().attempt(claim, std::make_shared<noting_wakeup>(),
                             embedded_client::within(generous), [](const auto&) {});
      posted.set_value();
    });
    posted.get_future().wait();
    static_cast<void>(client.leave(claim));
  }
  EXPECT_TRUE(client.list().empty());
}

TEST(sqlite_verbs, a_closed_store_leaves_nothing_and_lets_the_next_in) {
  // Broken: a client that closes blocks those that stay.
  const embedded_file file;
  const embedded_client stays(file.path());
  embedded_client goes(file.path());
  const auto holder = goes.claim();
  const auto waiter = stays.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(goes.attempt(holder)));
  ASSERT_TRUE(queued(stays.attempt(waiter, wakeup)));
  goes.close();
  EXPECT_TRUE(wakeup->is_granted());
  EXPECT_EQ(goes.attempt(goes.claim()).error(), errc::cancelled);
  // The writer lock, and this client's file and socket.
  const auto files = std::distance(std::filesystem::directory_iterator(file.beside()), {});
  EXPECT_EQ(files, 3);
}

}  // namespace
}  // namespace holdfast::test
