// The numbers agree with what was done, and the text is what a Prometheus server reads.
#include "core/exposition.hpp"
#include "support/engine_bench.hpp"
#include "support/prometheus_text.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using sample_labels = std::map<std::string, std::string>;

class metrics_of_memory : public ::testing::Test {
 protected:
  std::shared_ptr<metrics> numbers = std::make_shared<metrics>();

  [[nodiscard]] client open() const {
    client_options options;
    options.metrics = numbers;
    return client::open("memory:", options).value();
  }
  [[nodiscard]] prometheus_text read() const { return prometheus_text(numbers->prometheus_text()); }
};

sample_labels of(const std::string& primitive, sample_labels more = {}) {
  more["engine"] = "memory";
  more["primitive"] = primitive;
  return more;
}

TEST_F(metrics_of_memory, nothing_is_said_of_what_is_not_known) {
  // Broken: a dashboard shows an engine as up that was never contacted.
  EXPECT_EQ(numbers->prometheus_text(), "");
  const client shop = open();
  EXPECT_FALSE(read().value("holdfast_engine_up", {{"engine", "memory"}}));
  EXPECT_FALSE(read().value("holdfast_held", of("mutex")));
}

TEST_F(metrics_of_memory, agree_with_what_was_done) {
  // Broken: the numbers on the dashboard are not those of the service.
  const client shop = open();
  mutex stock(shop, "stock");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stock.acquire());
  auto held = stock.acquire();
  ASSERT_TRUE(held);
  EXPECT_FALSE(stock.acquire({.wait = duration{0}}));
  EXPECT_FALSE(stock.acquire({.wait = std::chrono::milliseconds(5)}));
  prometheus_text seen = read();
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("mutex", {{"result", "granted"}})), 6);
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("mutex", {{"result", "busy"}})), 1);
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("mutex", {{"result", "timed_out"}})), 1);
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("mutex", {{"result", "cancelled"}})), 0);
  EXPECT_EQ(seen.value("holdfast_acquire_seconds_count", of("mutex")), 6);
  EXPECT_EQ(seen.value("holdfast_hold_seconds_count", of("mutex")), 5);
  EXPECT_EQ(seen.value("holdfast_held", of("mutex")), 1);
  EXPECT_EQ(seen.value("holdfast_waiting", of("mutex")), 0);
  EXPECT_EQ(seen.value("holdfast_engine_up", {{"engine", "memory"}}), 1);
  EXPECT_GE(seen.value("holdfast_engine_round_trip_seconds_count", {{"engine", "memory"}}), 11);
  ASSERT_TRUE(held->release());
  seen = read();
  EXPECT_EQ(seen.value("holdfast_held", of("mutex")), 0);
  EXPECT_EQ(seen.value("holdfast_hold_seconds_count", of("mutex")), 6);
  EXPECT_FALSE(seen.value("holdfast_held", of("semaphore")));  // none was used
}

TEST_F(metrics_of_memory, primitives_are_distinguished) {
  // Broken: a candidate that waits all day looks like a stuck mutex.
  const client shop = open();
  shared_mutex catalogue(shop, "catalogue");
  semaphore gpu(shop, "gpu", {.max = 2});
  election scheduler(shop, "scheduler", "host-1");
  const auto reads = catalogue.acquire_shared();
  const auto reads_too = catalogue.acquire_shared();
  const auto permit = gpu.acquire();
  auto term = scheduler.campaign();
  prometheus_text seen = read();
  EXPECT_EQ(seen.value("holdfast_held", of("reader")), 2);
  EXPECT_EQ(seen.value("holdfast_held", of("semaphore")), 1);
  EXPECT_EQ(seen.value("holdfast_held", of("election")), 1);
  EXPECT_EQ(seen.value("leader_election_master_status", {{"name", "scheduler"}}), 1);
  std::stop_source stop;
  auto waits = std::make_shared<std::promise<void>>();
  election(shop, "scheduler", "host-2")
      .async_campaign({}, stop.get_token(), [waits](result<lease>) { waits->set_value(); });
  EXPECT_EQ(read().value("holdfast_waiting", of("election")), 1);
  stop.request_stop();
  waits->get_future().get();
  ASSERT_TRUE(term->release());
  seen = read();
  EXPECT_EQ(seen.value("holdfast_waiting", of("election")), 0);
  EXPECT_EQ(seen.value("leader_election_master_status", {{"name", "scheduler"}}), 0);
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("election", {{"result", "cancelled"}})),
            1);
}

TEST_F(metrics_of_memory, a_loss_has_its_cause_and_ends_the_hold) {
  // Broken: nobody can tell an operator's release from a dead network, or lost leases count as held.
  client shop = open();
  const auto forced = mutex(shop, "a").acquire();
  const auto longest = mutex(shop, "b", {.max_hold = std::chrono::milliseconds(100)}).acquire();
  ASSERT_TRUE(shop.revoke("a", revocation::force));
  EXPECT_TRUE(forced->wait_lost(std::chrono::minutes(1)));
  EXPECT_TRUE(longest->wait_lost(std::chrono::minutes(1)));
  const auto closed = mutex(shop, "c").acquire();
  shop.close();
  const prometheus_text seen = read();
  for (const char* cause : {"taken", "max_hold", "closed"}) {
    EXPECT_EQ(seen.value("holdfast_lost_total", of("mutex", {{"cause", cause}})), 1) << cause;
  }
  EXPECT_EQ(seen.value("holdfast_lost_total", of("mutex", {{"cause", "unconfirmed"}})), 0);
  EXPECT_EQ(seen.value("holdfast_held", of("mutex")), 0);
  EXPECT_EQ(seen.value("holdfast_hold_seconds_count", of("mutex")), 3);
}

TEST_F(metrics_of_memory, many_threads_are_counted_exactly) {
  // Broken: counts are lost under load, or a lock that is handed over inside the process is counted twice.
  const client shop = open();
  constexpr int threads = 8;
  constexpr int rounds = 500;
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        mutex stock(shop, "stock");
        for (int round = 0; round < rounds; ++round) ASSERT_TRUE(stock.acquire());
      });
    }
  }
  const prometheus_text seen = read();
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", of("mutex", {{"result", "granted"}})),
            threads * rounds);
  EXPECT_EQ(seen.value("holdfast_hold_seconds_count", of("mutex")), threads * rounds);
  EXPECT_EQ(seen.value("holdfast_held", of("mutex")), 0);
  EXPECT_EQ(seen.value("holdfast_waiting", of("mutex")), 0);
}

TEST_F(metrics_of_memory, names_are_labels_on_request_up_to_a_limit) {
  // Broken: a service with a lock per customer kills its Prometheus.
  numbers =
      std::make_shared<metrics>(metrics_options{.labels = {{"server", "db\"1\\\n"}}, .names = 2});
  const client shop = open();
  const auto all = {"other", "one", "two\"\\", "three"};
  std::vector<lease> held;
  for (const char* name : all) held.push_back(*mutex(shop, name).acquire());
  for (const char* name : all) EXPECT_FALSE(mutex(shop, name).acquire({.wait = duration{0}}));
  const prometheus_text seen = read();
  const auto named = [](const std::string& name, sample_labels more = {}) {
    more["name"] = name;
    more["server"] = "db\"1\\\n";
    return of("mutex", more);
  };
  EXPECT_EQ(seen.value("holdfast_held", named("one")), 1);
  EXPECT_EQ(seen.value("holdfast_held", named("two\"\\")), 1);
  EXPECT_EQ(seen.value("holdfast_held", named("other")), 2);
  EXPECT_FALSE(seen.value("holdfast_held", named("three")));
  EXPECT_EQ(seen.value("holdfast_acquisitions_total", named("other", {{"result", "busy"}})), 2);
}

TEST(metrics_options, are_checked) {
  // Broken: a scrape is refused as a whole because of one label.
  const auto refused = [](metrics_options options) {
    try {
      const metrics made(std::move(options));
    } catch (const lock_error& thrown) {
      return thrown.code() == errc::invalid;
    }
    return false;
  };
  EXPECT_TRUE(refused({.labels = {{"9", "x"}}}));
  EXPECT_TRUE(refused({.labels = {{"", "x"}}}));
  EXPECT_TRUE(refused({.labels = {{"engine", "x"}}}));
  EXPECT_TRUE(refused({.labels = {{"a", "x"}, {"a", "y"}}}));
  EXPECT_TRUE(refused({.labels = {{"__a", "x"}}}));
  EXPECT_TRUE(refused({.names = metrics::most_names + 1}));
  EXPECT_FALSE(refused({.labels = {{"a_1", "x"}}, .names = metrics::most_names}));
}

TEST(metrics_of_engine, renewals_and_the_engines_reach) {
  // Broken: an outage is seen only when locks are lost.
  const metrics numbers;
  auto meters = std::make_shared<core::engine_numbers>("fake", 0, 4);
  core::engine_settings settings;
  settings.meter = std::make_shared<core::meter>(meters, *meters);
  {
    engine_bench bench(settings);
    const auto holder = bench.ask();
    bench.grant(1);
    EXPECT_EQ(meters->reached.load(), 1);
    bench.runtime->run_for(10s);
    bench.store->answer_renewal(std::vector{renewed(1)});
    bench.runtime->run_for(10s);
    bench.store->answer_renewal(no_answer<std::vector<spi::renewal>>());
    EXPECT_EQ(meters->renewed.load(), 1U);
    EXPECT_EQ(meters->renewal_failed.load(), 1U);
    EXPECT_EQ(meters->round_trips.count(), 2U);  // the attempt and the renewal that was answered
    bench.ask("other", 0s);
    bench.store->answer_attempt(
        tl::unexpected<error>(error{errc::unavailable, "connect: refused", true}));
    EXPECT_EQ(meters->unreached.load(), 1);
    EXPECT_EQ(meters->reached.load(), 0);
    EXPECT_EQ(meters->round_trips.count(), 2U);  // what was never sent has no round trip
    bench.ask("other", 0s);
    bench.store->answer_attempt(blocked_outside());
    EXPECT_EQ(meters->unreached.load(), 0);
    EXPECT_EQ(meters->reached.load(), 1);
    settings.meter.reset();
  }
  EXPECT_EQ(meters->reached.load(), 0);  // nobody is left that could tell
}

TEST(exposition, seconds_are_exact) {
  // Broken: a bucket's bound is written in a way that no query matches.
  EXPECT_EQ(core::seconds_text(0), "0");
  EXPECT_EQ(core::seconds_text(100'000), "0.0001");
  EXPECT_EQ(core::seconds_text(12'500'000'000), "12.5");
  EXPECT_EQ(core::seconds_text(1'000'000'001), "1.000000001");
}

}  // namespace
}  // namespace holdfast::test
