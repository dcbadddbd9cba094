// One retry policy for everything that a client requests: claims that have none of their own, and
// latches.
#include "stores/table.hpp"
#include "support/eventually.hpp"
#include "support/lossy_store.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// A client with this policy, on a connection that can be disturbed.
class retrying {
 public:
  explicit retrying(const retry_policy& retry) {
    const auto runtime = spi::make_reactor();
    way_ = std::make_shared<lossy_store>(
        runtime, stores::open(spi::parse_url("memory:").value(), runtime).value());
    client_options options;
    options.retry = retry;
    client_ = std::make_unique<client>(client::open(runtime, way_, options).value());
  }
  [[nodiscard]] latch start() const { return latch(*client_, "start"); }
  [[nodiscard]] mutex stock(const lock_options& how = {}) const {
    return mutex(*client_, "stock", how);
  }
  [[nodiscard]] lossy_store& way() const { return *way_; }

 private:
  std::shared_ptr<lossy_store> way_;
  std::unique_ptr<client> client_;
};

TEST(retry, a_lock_without_a_policy_takes_that_of_its_client) {
  // Broken: a policy for everything must be passed to every lock.
  const retrying world(retry_policy::for_at_most(200ms));
  mutex stock = world.stock({.ttl = 900ms});
  mutex patient = world.stock({.ttl = 900ms, .retry = retry_policy{}});
  world.way().set(trouble::silence);
  const time_point before = clock::now();
  EXPECT_EQ(stock.acquire({.wait = patience}).error(), errc::unavailable);
  EXPECT_LT(clock::now() - before, patience / 2);
  auto waits = in_thread([&] { return patient.acquire({.wait = patience}); });
  EXPECT_FALSE(arrives(waits, 500ms)) << "a lock's own goes before it";
  world.way().set(trouble::none);
  EXPECT_TRUE(waits.get());
}

TEST(retry, a_release_takes_the_pauses_of_the_client) {
  // Broken: the policy governs acquiring, but releases have another pace.
  const retrying world(retry_policy::exponential(1ms, 2ms));
  mutex stock = world.stock();
  auto held = stock.acquire();
  ASSERT_TRUE(held);
  world.way().set(trouble::no_request);
  const int before = world.way().requests();
  EXPECT_EQ(held->release().error(), errc::unavailable);
  // By the usual pauses, which grow to 2 s, two dozen.
  EXPECT_TRUE(eventually([&] { return world.way().requests() >= before + 40; }, 20s))
      << world.way().requests() - before;
  world.way().set(trouble::none);
}

TEST(retry, a_latch_is_changed_with_so_many_attempts) {
  // Broken: "never again" is tried for ten seconds.
  const retrying world({.attempts = 3, .first = 1ms, .limit = 2ms});
  world.way().set(trouble::no_request);
  const int before = world.way().requests();
  EXPECT_EQ(world.start().set(1).error(), errc::unavailable);
  EXPECT_EQ(world.way().requests() - before, 3);
}

TEST(retry, a_latch_is_changed_within_so_much_time) {
  // Broken: with a short policy a caller hangs until the latch's own limit.
  const retrying world(retry_policy::for_at_most(200ms));
  world.way().set(trouble::silence);
  const time_point before = clock::now();
  EXPECT_EQ(world.start().set(1).error(), errc::unavailable);
  EXPECT_LT(clock::now() - before, 8s);  // its own is 10 s
}

TEST(retry, a_wait_for_a_latch_gives_up_after_so_many_failed_looks) {
  // Broken: a caller that asked to be notified of an outage waits through it.
  const retrying world({.attempts = 4, .first = 1ms, .limit = 2ms});
  world.way().set(trouble::no_request);
  const time_point before = clock::now();
  EXPECT_EQ(world.start().wait({.wait = patience}).error(), errc::unavailable);
  EXPECT_LT(clock::now() - before, patience / 2);
}

TEST(retry, a_wait_for_a_latch_gives_up_when_nothing_was_answered_for_so_long) {
  // Broken: the same, if the engine is silent instead of refusing.
  const retrying world(retry_policy::for_at_most(200ms));
  world.way().set(trouble::silence);
  const time_point before = clock::now();
  EXPECT_EQ(world.start().wait({.wait = patience}).error(), errc::unavailable);
  EXPECT_LT(clock::now() - before, patience / 2);
}

TEST(retry, a_latch_that_is_shut_is_waited_for_whatever_the_policy) {
  // Broken: contention is counted as an outage.
  const retrying world({.attempts = 1, .within = 100ms});
  latch start = world.start();
  ASSERT_TRUE(start.set(1));
  auto waits = in_thread([&] { return world.start().wait({.wait = patience}); });
  EXPECT_FALSE(arrives(waits, 1500ms)) << "it was looked at more than once";
  ASSERT_TRUE(start.count_down());
  EXPECT_TRUE(waits.get());
}

TEST(retry, a_policy_of_a_client_is_checked) {
  // Broken: a negative pause is a busy loop.
  for (const retry_policy& wrong :
       {retry_policy::times(0), retry_policy::exponential(-1s, 1s),
        retry_policy::exponential(1s, 25h), retry_policy::for_at_most(-1s)}) {
    client_options options;
    options.retry = wrong;
    const auto opened = client::open("memory:", options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error(), errc::invalid);
  }
}

}  // namespace
}  // namespace holdfast::test
