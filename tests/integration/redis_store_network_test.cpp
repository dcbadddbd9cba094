// The Redis store on a network that loses, delays and cuts.
#include "integration/redis_store_harness.hpp"
#include "support/also_longer.hpp"

namespace holdfast::test {
namespace {

using way = fault_proxy::way;

class redis_store_network : public redis_store_test {
 protected:
  // Makes sure that the next bytes are those of the verb in question.
  void warm_up() {
    auto first = mutex(through, "stock").acquire();
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_EQ(told(first->release()), "ok");
  }
  // From then on, what is not answered when its connection ends is sent once more.
  static void let_it_be_quiet() {
    const time_point until = clock::now() + 1100ms;
    EXPECT_TRUE(eventually([&] { return clock::now() > until; }));
  }
};

TEST_F(redis_store_network, an_acquire_whose_answer_is_lost_is_one_grant) {
  // Broken (H14, H15): the retry would wait for its own orphan, or be a second grant.
  // A lost answer is waited for during a third of the ttl.
  EXPECT_TRUE(also_longer(1s, [&](duration ttl) {
    warm_up();
    proxy.swallow(way::to_client, 1);
    auto lease = mutex(through, "stock", {.ttl = ttl}).acquire({.wait = 2 * patience});
    EXPECT_EQ(told(lease), "ok");
    if (!lease) return testing::AssertionFailure() << "not granted";
    const auto state = past.inspect("stock");
    const fence_token fence = lease->fence();
    const auto released = lease->release();
    EXPECT_TRUE(is_free(past, "stock"));
    if (!released) return testing::AssertionFailure() << released.error().message();
    // It was held all the time: by a single claim, this one.
    EXPECT_EQ(told(state), "ok");
    if (!state || state->holders.size() != 1) return testing::AssertionFailure() << "not by one";
    EXPECT_EQ(state->holders[0].fence, fence);
    return testing::AssertionSuccess();
  }));
}

TEST_F(redis_store_network, a_release_whose_answer_is_lost_frees_and_is_not_called_lost) {
  // Broken (H16): a release that was executed would be reported as a loss.
  EXPECT_TRUE(also_longer(1s, [&](duration ttl) {
    warm_up();
    auto lease = mutex(through, "stock", {.ttl = ttl}).acquire();
    EXPECT_EQ(told(lease), "ok");
    if (!lease) return testing::AssertionFailure() << "not granted";
    proxy.swallow(way::to_client, 1);
    const std::string released = told(lease->release());
    EXPECT_TRUE(is_free(past, "stock"));
    if (released != describe(errc::lost)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << released;
  }));
}

TEST_F(redis_store_network, a_release_that_never_arrives_is_repeated) {
  // Broken (H17): the lock would stay held for its whole ttl although its holder released it.
  mutex patient(through, "shelf", {.ttl = 3 * patience});
  auto lease = patient.acquire();
  ASSERT_TRUE(lease);
  proxy.lose(way::to_server);
  auto released = in_thread([&] { return lease->release(); });
  EXPECT_EQ(told(released.get()), std::string(describe(errc::unavailable)));
  proxy.pass();
  EXPECT_TRUE(is_free(past, "shelf"));
}

TEST_F(redis_store_network, a_request_that_arrives_after_its_claim_was_given_up_revives_nothing) {
  // Broken (H18): the server executes bytes after the connection that sent them is gone, and the
  // lock would be held by nobody until its ttl ends.
  mutex patient(through, "shelf", {.ttl = 3 * patience});
  warm_up();
  proxy.hold(way::to_server);
  EXPECT_NE(told(patient.acquire({.wait = 300ms})), "ok");
  proxy.pass();
  EXPECT_TRUE(is_free(past, "shelf"));
  mutex other(past, "shelf");
  auto free = other.acquire({.wait = patience});
  EXPECT_TRUE(free);
}

TEST_F(redis_store_network, a_downgrade_is_not_sent_again_by_its_connection) {
  // Broken: its first copy may arrive after the upgrade that followed, and let readers in beside
  // the writer.
  shared_mutex lock(through, "stock", {.ttl = 60s});
  auto lease = lock.acquire();
  ASSERT_TRUE(lease) << lease.error().message();
  let_it_be_quiet();
  proxy.hold(way::to_client);
  auto downgraded = in_thread([&] { return told(lock.downgrade(*lease)); });
  EXPECT_TRUE(eventually([&] {
    const auto state = past.inspect("stock");
    return state && state->holders.size() == 1 && state->holders[0].mode == lock_mode::shared;
  }));
  proxy.close();
  proxy.pass();
  const std::string unknown(describe(errc::unavailable));
  EXPECT_EQ(downgraded.get(), unknown);
  EXPECT_EQ(told(lock.try_upgrade(*lease)), unknown);
}

TEST_F(redis_store_network, a_waiter_whose_subscription_was_cut_gets_the_lock) {
  // Broken (H22): the grant would be pushed to nobody, and the waiter would sleep for the whole
  // ttl.
  mutex held(past, "stock", {.ttl = 30s});
  auto first = held.acquire();
  ASSERT_TRUE(first);
  auto waiting = waits_for(through, "stock");
  for (int i = 0; i < 3; ++i) server.cli({"CLIENT", "KILL", "TYPE", "pubsub"});
  EXPECT_EQ(told(first->release()), "ok");
  ASSERT_TRUE(arrives(waiting, 15s));
  EXPECT_EQ(told(waiting.get()), "ok");
}

TEST_F(redis_store_network, a_waiter_whose_push_comes_late_gets_the_lock) {
  // Broken (G6.1): a slow network would cost a waiter its turn.
  mutex held(past, "stock", {.ttl = 30s});
  auto first = held.acquire();
  ASSERT_TRUE(first);
  auto waiting = waits_for(through, "stock");
  proxy.delay(way::to_client, 300ms);
  EXPECT_EQ(told(first->release()), "ok");
  ASSERT_TRUE(arrives(waiting, 15s));
  EXPECT_EQ(told(waiting.get()), "ok");
}

TEST_F(redis_store_network, a_cut_off_waiter_costs_the_next_one_at_most_an_offer) {
  // Broken (G6.3): a lock offered to an unreachable process would be blocked for its whole ttl.
  mutex held(past, "stock", {.ttl = 30s, .fair = true});
  auto first = held.acquire();
  ASSERT_TRUE(first);
  const client third = open_client(redis_url(server.port()));
  auto cut_off = in_thread([&] {
    mutex deaf(through, "stock", {.ttl = 30s, .fair = true});
    return deaf.acquire({.wait = 4 * patience});
  });
  EXPECT_TRUE(eventually([&] { return line_length(past, "stock") == 1; }));
  auto next = in_thread([&] {
    mutex behind(third, "stock", {.ttl = 30s, .fair = true});
    return behind.acquire({.wait = patience});
  });
  EXPECT_TRUE(eventually([&] { return line_length(past, "stock") == 2; }));
  proxy.lose(way::to_client);
  proxy.lose(way::to_server);
  // What it had sent before is answered first: a re-check that arrives after the release accepts
  // the lock.
  ASSERT_EQ(server.cli({"PING"}), "PONG");
  const time_point freed = clock::now();
  EXPECT_EQ(told(first->release()), "ok");
  ASSERT_TRUE(arrives(next));
  auto lease = next.get();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_LT(clock::now() - freed, 20s);  // an offer of 2 s, a re-check of 1 s, and a slow machine
  EXPECT_EQ(told(lease->release()), "ok");
  proxy.pass();
  EXPECT_EQ(told(cut_off.get()), "ok");
}

// A request that is sent twice, since its connection ends, and whose first copy arrives last.
class redis_store_late_copy : public redis_store_network {
 protected:
  static constexpr std::size_t larger_than_pings = 100;

  fault_proxy near{proxy.port()};
  // Requests of a try, too, are executed for some seconds after they were sent.
  const client mine = open_client(redis_url(near.port(), "?connect_timeout=60s"));
  mutex lock{mine, "stock", {.ttl = 60s}};

  void SetUp() override {
    auto first = lock.acquire();
    ASSERT_TRUE(first) << first.error().message();
    ASSERT_EQ(told(first->release()), "ok");
  }
  result<lease> acquire(duration wait) {
    let_it_be_quiet();
    const std::size_t sent = proxy.bytes(way::to_server);
    proxy.delay(way::to_server, 2s);
    auto acquiring = in_thread([&] { return lock.acquire({.wait = wait}); });
    EXPECT_TRUE(eventually([&] { return proxy.bytes(way::to_server) > sent + larger_than_pings; }));
    proxy.pass();
    near.close();
    return acquiring.get();
  }
  // Of verbs, executed by the server.
  [[nodiscard]] std::size_t calls() const {
    const std::string all = server.cli({"INFO", "commandstats"});
    const std::string start = "cmdstat_fcall:calls=";
    return std::stoul(all.substr(all.find(start) + start.size()));
  }
  void expect_free_after(std::size_t executed) const {
    EXPECT_TRUE(eventually([&] { return calls() >= executed; }));
    const auto state = past.inspect("stock");
    ASSERT_TRUE(state) << state.error().message();
    EXPECT_TRUE(state->holders.empty());
  }
};

TEST_F(redis_store_late_copy, of_an_acquire_takes_nothing_after_the_release) {
  // Broken: it would hold the lock for nobody until the ttl ends.
  const std::size_t before = calls();
  auto lease = acquire(patience);
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(told(lease->release()), "ok");
  expect_free_after(before + 3);  // one copy, the release, the other copy
}

TEST_F(redis_store_late_copy, of_a_try_that_was_busy_takes_nothing) {
  // Broken: as above, though nobody has anything to release.
  auto held = mutex(past, "stock", {.ttl = 60s}).acquire();
  ASSERT_TRUE(held) << held.error().message();
  const std::size_t before = calls();
  EXPECT_EQ(told(acquire(0s)), std::string(describe(errc::busy)));
  EXPECT_EQ(told(held->release()), "ok");
  expect_free_after(before + 4);  // one copy, its withdrawal, the release, the other copy
}

}  // namespace
}  // namespace holdfast::test
