// For operators: look, list, take away, watch, check.
#include "contract/contract.hpp"
#include "support/also_longer.hpp"

#include <mutex>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(operating);

TEST_P(operating, a_name_shows_its_holder_and_its_waiters_in_order) {
  // Broken: an operator is shown the wrong holder.
  client_options options;
  options.payload = "host-1:11:backup";
  const client a = open(options);
  options.payload = "host-2:22:report";
  const client b = open(options);
  options.payload = "host-3:33:import";
  const client c = open(options);
  const auto held = mutex(a, "stock", {.ttl = 20s}).acquire();
  ASSERT_THAT(held, succeeds());
  std::stop_source stop;
  reply<lease> second;
  reply<lease> third;
  mutex(b, "stock").async_acquire({}, stop.get_token(), second.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  mutex(c, "stock").async_acquire({}, stop.get_token(), third.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 2));
  const auto state = c.inspect("stock");
  ASSERT_THAT(state, succeeds());
  ASSERT_EQ(state->holders.size(), 1U);
  EXPECT_EQ(state->holders[0].mode, spi::mode::exclusive);
  if (a.caps().reports_holders) {
    EXPECT_EQ(state->holders[0].payload, "host-1:11:backup");
    EXPECT_EQ(state->holders[0].fence, held->fence());
    EXPECT_EQ(state->holders[0].claim, held->claim());
  }
  if (state->holders[0].remaining) {
    EXPECT_LE(*state->holders[0].remaining, 20s);
    EXPECT_GT(*state->holders[0].remaining, 0s);
  }
  if (keeps_line(a)) {
    EXPECT_EQ(state->waiters[0].payload, "host-2:22:report");
    EXPECT_EQ(state->waiters[1].payload, "host-3:33:import");
    EXPECT_EQ(state->waiters[0].claim.size(), 16U);
  } else {
    EXPECT_TRUE(state->waiters.empty());
  }
  stop.request_stop();
  EXPECT_THAT(second.future.get(), fails_with(errc::cancelled));
  EXPECT_THAT(third.future.get(), fails_with(errc::cancelled));
}

TEST_P(operating, a_free_name_shows_nobody) {
  // Broken: a look creates something.
  const client a = open();
  const auto state = a.inspect("never used");
  ASSERT_THAT(state, succeeds());
  EXPECT_TRUE(state->holders.empty());
  EXPECT_TRUE(state->waiters.empty());
  if (a.caps().supports_listing) {
    EXPECT_TRUE(a.list()->empty());
  }
}

TEST_P(operating, a_list_has_the_names_that_are_in_use) {
  // Broken: an operator does not see a lock that blocks.
  const client a = open();
  if (!a.caps().supports_listing) {
    EXPECT_THAT(a.list(), fails_with(errc::unsupported));
    return;
  }
  const auto one = mutex(a, "shop/one").acquire();
  const auto two = mutex(a, "shop/two").acquire();
  const auto other = mutex(a, "depot/one").acquire();
  ASSERT_THAT(other, succeeds());
  const auto shop = a.list("shop/");
  ASSERT_THAT(shop, succeeds());
  ASSERT_EQ(shop->size(), 2U);
  EXPECT_EQ((*shop)[0].holders, 1U);
  EXPECT_EQ((*shop)[0].waiters, 0U);
  EXPECT_EQ(a.list()->size(), 3U);
  EXPECT_EQ(a.list("shop/one")->size(), 1U);
  EXPECT_EQ(a.list("%")->size(), 0U);
  EXPECT_EQ(a.list("_hop")->size(), 0U);
}

TEST_P(operating, a_blocked_name_says_so) {
  // Broken: an operator sees a free lock that nobody can have.
  const client a = open();
  const client b = open();
  const duration delay = 30s;
  if (!a.caps().supports_lock_delay) {
    EXPECT_THAT(mutex(a, "stock", {.lock_delay = delay}).acquire(), fails_with(errc::unsupported));
    return;
  }
  std::string name;
  std::vector<lease> ended;  // not released
  EXPECT_TRUE(also_longer(200ms, [&](duration ttl) {
    name = "stock/" + std::to_string(ttl.count());
    const lock_options options{.ttl = ttl, .renew = renew::never, .lock_delay = delay};
    auto held = mutex(a, name, options).acquire({.wait = patience});
    if (!held) return testing::AssertionFailure() << held.error().message();
    const auto before = b.inspect(name);
    EXPECT_THAT(before, succeeds());
    if (!before) return testing::AssertionFailure() << "not shown";
    ended.push_back(*std::move(held));
    EXPECT_TRUE(eventually([&] { return !ended.back().valid(); }));
    if (!before->blocked_for) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "blocked while it is held, or looked at too late";
  }));
  // A client that is gone blocks the lock for that time.
  if (b.caps().engine == "zookeeper" || b.caps().engine == "etcd") {
    EXPECT_EQ(holders(b, name), 1U);
    return;
  }
  ASSERT_TRUE(eventually([&] { return holders(b, name) == 0; }));
  const auto state = b.inspect(name);
  ASSERT_THAT(state, succeeds());
  ASSERT_TRUE(state->blocked_for);
  EXPECT_GT(*state->blocked_for, 5s);
  EXPECT_LE(*state->blocked_for, delay);
  if (!b.caps().supports_listing) return;
  const auto names = b.list(name);
  ASSERT_THAT(names, succeeds());
  ASSERT_EQ(names->size(), 1U);
  EXPECT_EQ(names->front().holders + names->front().waiters, 0U);
  ASSERT_TRUE(names->front().blocked_for);
  EXPECT_GT(*names->front().blocked_for, 5s);
}

TEST_P(operating, revoking_takes_away_one_claim_or_all) {
  // Broken: the wrong reader is revoked.
  client a = open();
  if (!a.caps().shared) {
    EXPECT_THAT(shared_mutex(a, "price").acquire_shared(), fails_with(errc::unsupported));
    return;
  }
  shared_mutex price(a, "price", told_soon);
  const auto one = price.acquire_shared();
  const auto two = price.acquire_shared();
  ASSERT_THAT(two, succeeds());
  const auto first = a.revoke("price", revocation::force, one->claim());
  ASSERT_THAT(first, succeeds());
  ASSERT_EQ(first->size(), 1U);
  EXPECT_EQ(first->front().claim, one->claim());
  EXPECT_TRUE(eventually([&] { return !one->valid(); }));
  EXPECT_TRUE(two->valid());
  EXPECT_EQ(a.revoke("price", revocation::force, "no such claim")->size(), 0U);
  EXPECT_EQ(a.revoke("price", revocation::force)->size(), 1U);
  EXPECT_TRUE(eventually([&] { return !two->valid(); }));
  EXPECT_EQ(a.revoke("price", revocation::force)->size(), 0U);
  EXPECT_EQ(a.revoke("free", revocation::safe)->size(), 0U);
}

TEST_P(operating, a_ping_is_answered_and_leaves_nothing_behind) {
  // Broken: a check at start-up refuses a reachable engine, or shows up in its listing.
  const client a = open();
  EXPECT_THAT(a.ping(1min), succeeds());
  EXPECT_THAT(a.ping(forever), succeeds());
  EXPECT_THAT(a.ping(0s), fails_with(errc::invalid));
  if (a.caps().supports_listing) {
    EXPECT_EQ(a.list()->size(), 0U);
  }
}

TEST_P(operating, what_was_revoked_is_free_as_soon_as_its_holder_gives_it_back) {
  // Broken: the holder was notified, has stopped and has released, and the lock stays idle for the
  // rest of its ttl.
  client a = open();
  client b = open();
  auto held = mutex(a, "stock", {.ttl = 30s}).acquire();
  ASSERT_THAT(held, succeeds());
  const time_point end = clock::now() + 30s;
  ASSERT_THAT(b.revoke("stock", revocation::safe), succeeds());
  // At once, or at its next renewal.
  ASSERT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = 1min}), succeeds());
  EXPECT_LT(clock::now(), end);
}

TEST_P(operating, waiters_stay_when_the_holder_is_taken_away) {
  // Broken: break-glass breaks the queue too.
  client a = open();
  const client b = open();
  const auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  take_away(a, "stock");
  const auto next = waits.future.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), held->fence());
}

// The kinds of events of one name, in order.
class log {
 public:
  auto sink() {
    return [this](const lock_event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
  }
  [[nodiscard]] bool has(lock_event_kind kind, const std::string& claim) const {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      for (const auto& each : events_) {
        if (each.kind == kind && each.claim == claim) return true;
      }
      return false;
    });
  }
  [[nodiscard]] std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& each : events_) all.push_back(each.name);
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<lock_event> events_;  // guarded by mutex_
};

TEST_P(operating, what_happens_to_a_name_can_be_watched) {
  // Broken: `watch` misses a hand-over.
  client a = open();
  const client b = open();
  const client watcher = open();
  log seen;
  auto watching = watcher.observe("stock", seen.sink());
  if (!a.caps().supports_listing) {
    EXPECT_THAT(watching, fails_with(errc::unsupported));
    return;
  }
  ASSERT_THAT(watching, succeeds());
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(seen.has(lock_event_kind::granted, held->claim()));
  reply<lease> waits;
  mutex(b, "stock").async_acquire({}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  const auto queued = a.inspect("stock")->waiters[0].claim;
  EXPECT_TRUE(seen.has(lock_event_kind::queued, queued));
  const auto claim = held->claim();
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_TRUE(seen.has(lock_event_kind::released, claim));
  auto next = waits.future.get();
  ASSERT_THAT(next, succeeds());
  EXPECT_TRUE(seen.has(lock_event_kind::granted, next->claim()));
  ASSERT_THAT(a.revoke("stock", revocation::force), succeeds());
  EXPECT_TRUE(seen.has(lock_event_kind::forced, next->claim()));
  const auto other = mutex(a, "other").acquire();
  ASSERT_THAT(other, succeeds());
  EXPECT_THAT(seen.names(), testing::Each("stock"));
}

TEST_P(operating, all_names_can_be_watched_at_once) {
  // Broken: `watch` without a name shows nothing.
  client_options shop;
  shop.name_space = "shop";
  const client a = open(shop);
  const client stranger = open();
  log seen;
  auto watching = a.observe("", seen.sink());
  if (!a.caps().supports_listing) {
    EXPECT_THAT(watching, fails_with(errc::unsupported));
    return;
  }
  ASSERT_THAT(watching, succeeds());
  const auto foreign = mutex(stranger, "foreign").acquire();
  const auto one = mutex(a, "one").acquire();
  const auto two = mutex(a, "two").acquire();
  ASSERT_THAT(two, succeeds());
  EXPECT_TRUE(seen.has(lock_event_kind::granted, one->claim()));
  EXPECT_TRUE(seen.has(lock_event_kind::granted, two->claim()));
  EXPECT_THAT(seen.names(), testing::Not(testing::Contains("foreign")));
}

TEST_P(operating, the_engine_can_be_checked) {
  // Broken: `doctor` has nothing to say.
  const client a = open();
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds()) << "connected";
  std::string failed;
  // Again if something did not arrive in time.
  EXPECT_TRUE(eventually([&] {
    failed.clear();
    const auto checks = a.probe();
    if (!checks) return false;
    EXPECT_FALSE(checks->empty());
    for (const auto& each : *checks) {
      EXPECT_FALSE(each.name.empty());
      if (each.state == health_check::status::fail) failed += each.name + ": " + each.detail + "\n";
    }
    return failed.empty();
  })) << failed;
}

}  // namespace
}  // namespace holdfast::test
