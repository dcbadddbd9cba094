// The engine cannot be reached, or its answers are lost: what every interface reports and does
// then.
#include "contract/contract.hpp"
#include "stores/table.hpp"
#include "support/also_longer.hpp"
#include "support/lossy_store.hpp"
#include "support/recording_observer.hpp"

#include <atomic>

namespace holdfast::test {
namespace {

// A client whose connection to the engine can be disturbed, and one whose connection is fine.
class outage : public store_test {
 protected:
  outage() {
    auto runtime = spi::make_reactor();
    auto inner = stores::open(spi::parse_url(url()).value(), runtime).value();
    way_ = std::make_shared<lossy_store>(runtime, std::move(inner));
    client_options options;
    options.observer = seen_;
    options.close_within = 100ms;
    disturbed_.emplace(client::open(runtime, way_, options).value());
  }

  [[nodiscard]] client& disturbed() { return *disturbed_; }
  [[nodiscard]] lossy_store& way() { return *way_; }
  [[nodiscard]] const recording_observer& seen() const { return *seen_; }

 private:
  std::shared_ptr<recording_observer> seen_ = std::make_shared<recording_observer>();
  std::shared_ptr<lossy_store> way_;
  std::optional<client> disturbed_;
};

INSTANTIATE_TEST_SUITE_P(on, outage, testing::ValuesIn(store_setups()), name_of_store);

TEST_P(outage, a_try_is_not_answered_with_busy) {
  // Broken: without an engine, a program concludes that the lock is busy.
  way().set(trouble::no_request);
  mutex stock(disturbed(), "stock");
  EXPECT_THAT(stock.acquire({.wait = 0s}), fails_with(errc::unavailable));
  EXPECT_EQ(thrown_by([&] { static_cast<void>(stock.try_lock()); }), "unavailable");
  EXPECT_EQ(thrown_by([&] { static_cast<void>(stock.try_lock_for(20ms)); }), "unavailable");
  EXPECT_THAT(stock.acquire({.wait = 20ms}), fails_with(errc::unavailable));
  way().set(trouble::none);
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

TEST_P(outage, what_was_asked_is_told_by_both_forms_of_a_call) {
  // Broken: "unavailable (connection refused)", and nobody knows of which lock.
  const auto told = [](const error& why) { return why.detail; };
  const semaphore permits(disturbed(), "gpu", {.max = 2});
  way().set(trouble::no_request);
  EXPECT_THAT(told(permits.available().error()), testing::HasSubstr("inspect 'gpu'"));
  reply<std::uint32_t> later;
  permits.async_available().then(later.callback());
  EXPECT_THAT(told(later.future.get().error()), testing::HasSubstr("inspect 'gpu'"));
  const latch start(disturbed(), "start");
  EXPECT_THAT(told(start.count().error()), testing::HasSubstr("read 'start'"));
  EXPECT_THAT(told(start.wait({.wait = 0s}).error()), testing::HasSubstr("wait for 'start'"));
  lease nothing;
  shared_mutex price(disturbed(), "price");
  EXPECT_THAT(told(price.try_upgrade(nothing).error()), testing::HasSubstr("upgrade 'price'"));
  way().set(trouble::none);
}

TEST_P(outage, a_wait_outlasts_an_outage) {
  // Broken: one lost packet fails a wait of a minute.
  way().set(trouble::no_request, 3);
  mutex stock(disturbed(), "stock");
  EXPECT_THAT(stock.acquire({.wait = patience}), succeeds());
}

TEST_P(outage, the_retry_policy_bounds_the_attempts) {
  // Broken: "never again" is tried forever.
  way().set(trouble::no_request);
  mutex once(disturbed(), "stock", {.retry = retry_policy::never()});
  const int before = way().requests();
  EXPECT_THAT(once.acquire({.wait = patience}), fails_with(errc::unavailable));
  mutex thrice(disturbed(), "other",
               {.retry = retry_policy{.attempts = 3, .first = 1ms, .limit = 2ms}});
  EXPECT_THAT(thrice.acquire({.wait = patience}), fails_with(errc::unavailable));
  EXPECT_GE(way().requests() - before, 4);
  way().set(trouble::none);
}

TEST_P(outage, an_attempt_whose_answer_was_lost_is_the_same_grant) {
  // Broken: the client waits for its own orphan.
  way().set(trouble::no_answer, 2);
  mutex stock(disturbed(), "stock");
  const auto held = stock.acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  const client other = open();
  EXPECT_TRUE(eventually([&] { return holders(other, "stock") == 1; }));
}

TEST_P(outage, a_try_whose_answer_was_lost_leaves_nothing_behind) {
  // Broken: a lock that nobody holds.
  way().set(trouble::no_answer, 1);
  mutex stock(disturbed(), "stock");
  EXPECT_THAT(stock.acquire({.wait = 0s}), fails_with(errc::unavailable));
  EXPECT_TRUE(becomes_free(open(), "stock"));
}

TEST_P(outage, a_release_without_an_answer_goes_on_in_the_background) {
  // Broken: one lost packet and the lock stays until its ttl ends.
  mutex stock(disturbed(), "stock");
  auto held = stock.acquire();
  ASSERT_THAT(held, succeeds());
  way().set(trouble::no_request, 2);
  EXPECT_THAT(held->release(), fails_with(errc::unavailable));
  EXPECT_TRUE(seen().sees(event_kind::release_pending));
  EXPECT_TRUE(becomes_free(open(), "stock"));
}

TEST_P(outage, the_holder_gives_up_before_the_engine_does) {
  // Broken: two valid holders across a cut cable.
  const client other = open();
  if (!other.caps().expires) return;  // there is no network: the process's life is the proof
  EXPECT_TRUE(also_longer(500ms, [&](duration ttl) {
    const std::string name = "stock/" + std::to_string(ttl.count());
    const auto held = mutex(disturbed(), name, {.ttl = ttl}).acquire();
    if (!held) return testing::AssertionFailure() << held.error().message();
    const std::stop_token lost = held->lost();
    way().set(trouble::silence);
    const auto next = mutex(other, name).acquire({.wait = patience});
    way().set(trouble::none);
    if (!next) return testing::AssertionFailure() << next.error().message();
    EXPECT_FALSE(held->valid());
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_GT(next->fence(), held->fence());
    const auto told = [&] { return !seen().all(event_kind::renewal_failed).empty(); };
    if (eventually(told, 2s)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "no renewal was tried";
  }));
}

TEST_P(outage, one_missed_renewal_is_not_a_loss) {
  // Broken: a hiccup of the network costs the lock.
  if (!disturbed().caps().expires) return;
  EXPECT_TRUE(also_longer(2s, [&](duration ttl) {
    const auto held = mutex(disturbed(), "stock", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    const std::size_t failed = seen().all(event_kind::renewal_failed).size();
    const std::size_t renewed = seen().all(event_kind::renewed).size();
    way().set(trouble::no_request, 1);
    const auto sees_more = [&](event_kind kind, std::size_t than) {
      return eventually([&] { return seen().all(kind).size() > than || !held->valid(); });
    };
    EXPECT_TRUE(sees_more(event_kind::renewal_failed, failed));
    EXPECT_TRUE(sees_more(event_kind::renewed, renewed));
    return held->valid() ? testing::AssertionSuccess() : testing::AssertionFailure() << "lost";
  }));
}

TEST_P(outage, a_count_down_whose_answer_was_lost_counts_once) {
  // Broken: the latch opens one worker too early.
  if (!disturbed().caps().latches) return;
  latch start(disturbed(), "start");
  way().set(trouble::no_answer, 1);
  ASSERT_THAT(start.set(3), succeeds());
  way().set(trouble::no_answer, 2);
  EXPECT_EQ(start.count_down().value(), 2U);
  EXPECT_EQ(latch(open(), "start").count().value(), 2U);
}

TEST_P(outage, a_wait_for_a_latch_outlasts_an_outage) {
  // Broken: the start signal is lost with one packet.
  if (!disturbed().caps().latches) return;
  const client other = open();
  latch fine(other, "start");
  ASSERT_THAT(fine.set(1), succeeds());
  way().set(trouble::no_request);
  reply<void> waits;
  latch(disturbed(), "start").async_wait({.wait = patience}, {}, waits.callback());
  EXPECT_THAT(latch(disturbed(), "start").wait({.wait = 30ms}), fails_with(errc::unavailable));
  ASSERT_THAT(fine.count_down(), succeeds());
  EXPECT_FALSE(arrives(waits.future, 10ms));
  way().set(trouble::none);
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_P(outage, a_wait_for_a_latch_that_was_seen_shut_times_out) {
  // Broken: a look that is late at the end is reported as an unreachable engine.
  if (!disturbed().caps().latches) return;
  latch start(disturbed(), "start");
  ASSERT_THAT(start.set(1), succeeds());
  EXPECT_TRUE(also_longer(900ms, [&](duration wait) {
    const int before = way().requests();
    auto seen_once = in_thread([&] { return start.wait({.wait = wait}); });
    EXPECT_TRUE(eventually([&] { return way().requests() > before; }));
    way().set(trouble::silence);
    const auto ended = seen_once.get();
    EXPECT_FALSE(ended);
    EXPECT_THAT(start.wait({.wait = 50ms}), fails_with(errc::unavailable));
    way().set(trouble::none);
    if (!ended && ended.error() == errc::timed_out) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "not seen in time";
  }));
}

TEST_P(outage, an_observer_hears_of_the_leader_when_it_is_over) {
  // Broken: after one failed look the observer hears nothing more.
  const client other = open();
  if (!elects(other)) return;
  std::atomic<bool> heard{false};
  const election watched(disturbed(), "scheduler", "observer");
  way().set(trouble::no_request);
  auto watching = watched.observe([&](const std::optional<leader_info>& leader) {
    if (leader && leader->id == "host") heard = true;
  });
  ASSERT_THAT(watching, succeeds());
  election candidate(other, "scheduler", "host");
  const auto leads = candidate.campaign();
  ASSERT_THAT(leads, succeeds());
  EXPECT_FALSE(heard.load());
  way().set(trouble::none);
  EXPECT_TRUE(eventually([&] { return heard.load(); }));
}

TEST_P(outage, a_multi_lock_does_not_sit_on_one_lock_while_it_waits_for_a_silent_engine) {
  // Broken: a dead engine locks up a live one.
  const client fine = open();
  mutex live(fine, "a");
  // A request without an answer is given up after a third of its ttl.
  mutex dead(disturbed(), "b", {.ttl = 3s});
  multi_lock both({&live, &dead});
  way().set(trouble::silence);
  std::stop_source stop;
  auto waits = in_thread([&] { return both.acquire({.wait = 4 * patience}, stop.get_token()); });
  // Within the second that a try may take, with a generous margin.
  EXPECT_THAT(mutex(open(), "a").acquire({.wait = patience}), succeeds());
  way().set(trouble::none);
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(outage, an_upgrade_without_an_answer_may_be_asked_for_again) {
  // Broken: a lost answer leaves a writer that considers itself a reader, permanently.
  const auto& caps = disturbed().caps();
  if (!caps.shared || !caps.supports_mode_change) return;
  shared_mutex price(disturbed(), "price");
  auto held = price.acquire_shared();
  ASSERT_THAT(held, succeeds());
  way().set(trouble::no_answer, 1);
  EXPECT_THAT(price.try_upgrade(*held), fails_with(errc::unavailable));
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(price.try_upgrade(*held), succeeds());
  EXPECT_THAT(shared_mutex(open(), "price").acquire_shared({.wait = 0s}), fails_with(errc::busy));
}

}  // namespace
}  // namespace holdfast::test
