// breaker=N and degrade=local on real engines that are killed, stopped or cut off, and come back.
#include "integration/lost_engines.hpp"

#include "support/also_longer.hpp"

#include <memory>

namespace holdfast::test {
namespace {

// Short enough to detect a silent engine soon: a request waits a third of it. An engine that does
// not answer within that is rightly considered lost: then a longer one decides.
constexpr duration short_ttl = 1500ms;

class lost_engines : public testing::TestWithParam<way_to_lose> {
 protected:
  // From now on seen() and nothing_seen() refer to this one.
  [[nodiscard]] client open(const std::string& url_options) {
    seen_ = std::make_shared<recording_observer>();
    client_options options;
    options.observer = seen_;
    options.close_within = 100ms;
    return client::open(engine().url() + "&breaker_pause=200ms&" + url_options, options).value();
  }
  [[nodiscard]] client open_plain() const { return client::open(engine().url()).value(); }
  [[nodiscard]] lost_engine& engine() const { return *engine_; }
  [[nodiscard]] const recording_observer& seen() const { return *seen_; }
  [[nodiscard]] bool nothing_seen() const {
    return seen_->all(event_kind::engine_unreachable).empty() &&
           seen_->all(event_kind::degraded).empty();
  }

 private:
  const std::unique_ptr<lost_engine> engine_ = GetParam().make();
  std::shared_ptr<recording_observer> seen_;
};

class proxied_engines : public lost_engines {};

INSTANTIATE_TEST_SUITE_P(by, lost_engines, testing::ValuesIn(ways_to_lose()),
                         [](const auto& each) { return each.param.name; });
INSTANTIATE_TEST_SUITE_P(on, proxied_engines, testing::ValuesIn(engines_behind_proxies()),
                         [](const auto& each) { return each.param.name; });

TEST_P(lost_engines, a_local_fallback_shows_itself_and_ends_when_the_engine_is_back) {
  // Broken: a caller that asked to continue cannot, does not know it, or continues beside the
  // engine's holder.
  EXPECT_TRUE(also_longer(short_ttl, [&](duration ttl) {
    const client a = open("degrade=local&breaker=2");
    auto kept = mutex(a, "before", {.ttl = ttl}).acquire({.wait = patience});
    mutex stock(a, "stock", {.ttl = ttl});
    auto real = stock.acquire({.wait = patience});
    EXPECT_THAT(kept, succeeds());
    EXPECT_THAT(real, succeeds());
    if (!kept || !real) return testing::AssertionFailure() << "not granted";
    const fence_token before = real->fence();
    if (real->degraded() || !real->release() || !nothing_seen()) {
      return testing::AssertionFailure() << "not heard before it was lost";
    }

    engine().lose();
    const auto local = stock.acquire({.wait = 2 * patience});
    const bool valid = local && local->valid();
    EXPECT_THAT(local, succeeds());
    EXPECT_TRUE(seen().sees(event_kind::engine_unreachable));
    EXPECT_TRUE(seen().sees(event_kind::degraded));
    EXPECT_FALSE(kept->degraded()) << "what was the engine's stays the engine's";
    EXPECT_TRUE(eventually([&] { return !kept->valid(); }, ttl + patience))
        << "until its proof has run out";

    engine().give_back();
    if (!valid) return testing::AssertionFailure() << "the local fallback's was not valid";
    EXPECT_TRUE(local->degraded());
    EXPECT_EQ(local->fence(), fence_token{});
    EXPECT_TRUE(eventually([&] { return local->lost().stop_requested(); }));
    EXPECT_FALSE(local->valid());
    EXPECT_TRUE(seen().sees(event_kind::engine_back));
    const auto next = stock.acquire({.wait = 2 * patience});
    EXPECT_THAT(next, succeeds());
    if (!next || next->degraded()) return testing::AssertionFailure() << "not heard afterwards";
    EXPECT_GT(next->fence(), before);
    return testing::AssertionSuccess();
  }));
}

TEST_P(lost_engines, without_a_local_fallback_a_waiter_is_refused_at_once) {
  // Broken: threads pile up behind a dead engine, or somebody has to restart the program after it.
  const client a = open("breaker=1");
  mutex stock(a, "stock", {.ttl = short_ttl});
  // With this breaker a single late answer is an outage, through which nobody waits.
  const auto is_granted = [&] {
    return eventually([&] { return stock.acquire({.wait = patience}).has_value(); });
  };
  ASSERT_TRUE(is_granted());
  engine().lose();
  ASSERT_TRUE(eventually([&] {
    static_cast<void>(stock.acquire({.wait = 0s}));
    return !seen().all(event_kind::engine_unreachable).empty();
  }));
  const time_point asked = clock::now();
  const auto refused = stock.acquire({.wait = patience});
  EXPECT_THAT(refused, fails_with(errc::unavailable));
  EXPECT_LT(clock::now() - asked, 15s);
  EXPECT_TRUE(seen().all(event_kind::degraded).empty()) << "nobody asked for that";
  engine().give_back();
  EXPECT_TRUE(seen().sees(event_kind::engine_back));
  EXPECT_TRUE(is_granted());
}

TEST_P(lost_engines, a_held_lock_is_no_outage_and_outlives_one) {
  // Broken: contention is treated as an outage, or an outage gives away a lock that is held at the
  // engine.
  const client other = open_plain();
  auto held = mutex(other, "stock", {.ttl = 4 * patience}).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  EXPECT_TRUE(also_longer(short_ttl, [&](duration ttl) {
    const client a = open("degrade=local&breaker=1");
    mutex stock(a, "stock", {.ttl = ttl});
    for (int i = 0; i < 20; ++i) {
      const auto refused = stock.acquire({.wait = 0s});
      if (refused || refused.error() != errc::busy) return testing::AssertionFailure() << "a try";
    }
    const auto waited = stock.acquire({.wait = 2s});
    if (waited || waited.error() != errc::timed_out) return testing::AssertionFailure() << "a wait";
    if (!nothing_seen()) return testing::AssertionFailure() << "an outage was seen";

    engine().lose();
    {
      const auto local = stock.acquire({.wait = 2 * patience});
      EXPECT_THAT(local, succeeds());
      EXPECT_TRUE(local && local->degraded());
      engine().give_back();
      EXPECT_TRUE(eventually([&] { return !local || !local->valid(); }));
    }
    EXPECT_TRUE(eventually([&] {
      const auto answer = stock.acquire({.wait = 0s});
      EXPECT_FALSE(answer && !answer->degraded()) << "held by another";
      return !answer && answer.error() == errc::busy;
    }));
    return testing::AssertionSuccess();
  }));
  // Over a new connection: what is sent once must not meet one that has ended.
  EXPECT_TRUE(eventually([&] { return holders(other, "stock") == 1; }));
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(mutex(other, "stock").acquire({.wait = patience}), succeeds());
}

TEST_P(proxied_engines, a_slow_engine_is_not_a_lost_one) {
  // Broken: a lock that excludes nobody is given out because the network is slow today.
  const client a = open("degrade=local&breaker=1");
  mutex stock(a, "stock", {.ttl = 30s});
  ASSERT_THAT(stock.acquire({.wait = patience}), succeeds());
  engine().proxy().delay(fault_proxy::way::to_client, 150ms);
  for (int i = 0; i < 3; ++i) {
    const auto lease = stock.acquire({.wait = patience});
    ASSERT_THAT(lease, succeeds());
    EXPECT_FALSE(lease->degraded());
  }
  EXPECT_TRUE(nothing_seen());
}

TEST_P(proxied_engines, connections_are_made_again_at_the_pace_that_was_asked_for) {
  // Broken: the retry policy that a user sets does not apply to connections.
  client_options options;
  options.retry = retry_policy::exponential(2ms, 10ms);
  const client a = client::open(engine().url(), options).value();
  mutex stock(a, "stock", {.retry = options.retry});
  ASSERT_THAT(stock.acquire({.wait = patience}), succeeds());
  const std::size_t before = engine().proxy().accepted();
  engine().proxy().refuse();
  engine().proxy().reset();
  auto waits = in_thread([&] { return stock.acquire({.wait = 4 * patience}); });
  // By the usual pauses, which grow to 2 s, two dozen.
  EXPECT_TRUE(eventually([&] { return engine().proxy().accepted() >= before + 40; }))
      << engine().proxy().accepted() - before;
  engine().proxy().pass();
  EXPECT_THAT(waits.get(), succeeds());
}

}  // namespace
}  // namespace holdfast::test
