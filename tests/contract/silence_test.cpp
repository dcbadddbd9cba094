// Waiters that died or hang in front of a live one: the whole queue costs one offer, however many
// they are.
#include "contract/contract.hpp"
#include "support/forked_process.hpp"
#include "support/shared_page.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

namespace holdfast::test {
namespace {

constexpr std::size_t silent_ones = 12;  // an offer each would be 24 s
constexpr duration one_offer = 12s;      // 2 s, a re-check of 1 s, and a slow machine

// Engines that keep a queue, can notify processes, and hand over by an offer. With ZooKeeper, etcd
// and the `session` and `row` strategies a place in the queue belongs to a session (or lease) of
// the server, which decides when it ends; the other engines have no queue.
const std::set<std::string> with_offers{"sqlite", "postgresql",     "mariadb",
                                        "redis",  "redis_sentinel", "redis_cluster"};

std::vector<store_setup> engines_with_offers() {
  std::vector<store_setup> chosen;
  std::ranges::copy_if(store_setups(), std::back_inserter(chosen),
                       [&](const store_setup& each) { return with_offers.contains(each.name); });
  return chosen;
}

struct line {
  std::atomic<bool> is_held{false};
  std::atomic<std::size_t> served{0};
};

class silence : public store_test {
 protected:
  // Processes that queue once it is held. Made before any client: a fork during another thread's
  // connect may copy a library's lock in the held state.
  void start() {
    for (std::size_t i = 0; i < silent_ones; ++i) {
      others_.emplace_back([this] {
        if (!eventually([this] { return shared_->is_held.load(); }, 6 * patience)) return;
        const client own = open();
        auto mine = mutex(own, "line", {.ttl = 60s, .fair = true}).acquire({.wait = 10min});
        if (!mine) throw lock_error(mine.error());
        ++shared_->served;
      });
    }
  }
  // Holds it until all others are in the queue, does `what` to them, and releases when one more has
  // queued, which must be granted.
  template <class What>
  void pass_over(What what) {
    const client a = open();
    const client b = open({.payload = "live"});
    auto held = mutex(a, "line", {.ttl = 30s, .fair = true}).acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    shared_->is_held = true;
    ASSERT_TRUE(eventually([&] { return waiters(a, "line") == silent_ones; }, 6 * patience));
    for (forked_process& each : others_) what(each);
    reply<lease> waits;
    mutex(b, "line", {.fair = true}).async_acquire({.wait = 10min}, {}, waits.callback());
    ASSERT_TRUE(eventually([&] { return waits_at_the_end(a); }, 6 * patience));
    const time_point freed = clock::now();
    ASSERT_THAT(held->release(), succeeds());
    ASSERT_TRUE(arrives(waits.future, 6 * patience));
    EXPECT_THAT(waits.future.get(), succeeds());
    EXPECT_LT(clock::now() - freed, one_offer);
    EXPECT_EQ(shared_->served, 0U);
  }
  std::vector<forked_process> others_;
  const shared_page<line> shared_;

 private:
  static bool waits_at_the_end(const client& from) {
    const auto state = from.inspect("line");
    return state && !state->waiters.empty() && state->waiters.back().payload == "live";
  }
};

class killed_waiters : public silence {};
class frozen_waiters : public silence {};
INSTANTIATE_TEST_SUITE_P(on, killed_waiters, testing::ValuesIn(engines_with_offers()),
                         name_of_store);
INSTANTIATE_TEST_SUITE_P(on, frozen_waiters, testing::ValuesIn(engines_with_offers()),
                         name_of_store);

TEST_P(killed_waiters, cost_the_line_one_offer_at_most) {
  // Broken (G6.3, G7.4): each dead waiter costs those behind it an offer.
  start();
  pass_over([](forked_process& each) { each.kill(); });
}

TEST_P(frozen_waiters, cost_the_line_one_offer_and_are_served_when_they_go_on) {
  // Broken (G6.3): each frozen waiter costs those behind it an offer, or takes the lock with it, or
  // is never served again.
  start();
  pass_over([](forked_process& each) { each.stop(); });
  for (const forked_process& each : others_) each.signal(SIGCONT);
  for (forked_process& each : others_) EXPECT_EQ(each.wait(), 0);
  EXPECT_EQ(shared_->served, silent_ones);
}

}  // namespace
}  // namespace holdfast::test
