// N of M permits.
#include "contract/contract.hpp"
#include "support/rounds.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(semaphores);

// If the store has no semaphores, it must say so; the test then ends.
bool permits(const client& from) {
  if (from.caps().permits) return true;
  EXPECT_THAT(semaphore(from, "api", {.max = 2}).acquire(), fails_with(errc::unsupported));
  return false;
}

// Redisson's semaphore keeps its number of permits, which its programs have set.
bool keeps_its_number(const client& from) {
  return from.caps().engine == "redis, dialect=redisson";
}

TEST_P(semaphores, as_many_as_there_are_permits_get_in) {
  // Broken: more calls than the partner allows, or fewer than were paid for.
  const client a = open();
  const client b = open();
  if (!permits(a)) return;
  semaphore from_a(a, "api", {.max = 3});
  semaphore from_b(b, "api", {.max = 3});
  auto one = from_a.acquire({.wait = 0s});
  auto two = from_b.acquire({.wait = 0s});
  auto three = from_a.acquire({.wait = 0s});
  EXPECT_THAT(one, succeeds());
  EXPECT_THAT(two, succeeds());
  EXPECT_THAT(three, succeeds());
  EXPECT_THAT(from_b.acquire({.wait = 0s}), fails_with(errc::busy));
  EXPECT_THAT(two->release(), succeeds());
  EXPECT_THAT(from_b.acquire({.wait = 0s}), succeeds());
}

TEST_P(semaphores, a_permit_is_given_back_once) {
  // Broken: a double release lets one more in than there is room for.
  const client a = open();
  if (!permits(a)) return;
  semaphore api(a, "api", {.max = 2});
  auto one = api.acquire();
  auto two = api.acquire();
  ASSERT_THAT(one, succeeds());
  ASSERT_THAT(two, succeeds());
  EXPECT_THAT(one->release(), succeeds());
  EXPECT_THAT(one->release(), fails_with(errc::not_held));
  auto three = api.acquire({.wait = 0s});
  EXPECT_THAT(three, succeeds());
  EXPECT_THAT(api.acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_P(semaphores, several_permits_are_all_or_nothing) {
  // Broken: two that each have half of what they need wait for each other.
  const client a = open();
  if (!permits(a)) return;
  semaphore api(a, "api", {.max = 5});
  auto three = api.acquire({.wait = 0s}, {}, 3);
  ASSERT_THAT(three, succeeds());
  EXPECT_THAT(api.acquire({.wait = 0s}, {}, 3), fails_with(errc::busy));
  EXPECT_THAT(api.available(), succeeds());
  EXPECT_EQ(api.available().value(), 2U);
  auto two = api.acquire({.wait = 0s}, {}, 2);
  EXPECT_THAT(two, succeeds());
  EXPECT_EQ(api.available().value(), 0U);
  EXPECT_THAT(three->release(), succeeds());
  EXPECT_EQ(api.available().value(), 3U);
}

TEST_P(semaphores, a_waiter_for_many_permits_is_woken_when_there_are_enough) {
  // Broken: later small claims starve a large one, or its wake-up is lost.
  const client a = open();
  const client b = open();
  if (!permits(a)) return;
  semaphore from_a(a, "api", {.max = 4});
  semaphore from_b(b, "api", {.max = 4});
  std::vector<lease> held;
  for (int i = 0; i < 4; ++i) held.push_back(from_a.acquire().value());
  auto waits = in_thread([&] { return from_b.acquire({.wait = patience}, {}, 3); });
  ASSERT_TRUE(has_waiters(a, "api", 1));
  held.pop_back();
  held.pop_back();
  EXPECT_FALSE(arrives(waits, 20ms));
  held.pop_back();
  EXPECT_THAT(waits.get(), succeeds());
}

TEST_P(semaphores, the_number_of_permits_is_one_for_all) {
  // Broken: two deployments disagree about the limit, and each keeps its own.
  const client a = open();
  const client b = open();
  if (!permits(a)) return;
  semaphore three(a, "api", {.max = 3});
  semaphore four(b, "api", {.max = 4});
  auto held = three.acquire();
  ASSERT_THAT(held, succeeds());
  const auto refused = four.acquire({.wait = 0s});
  ASSERT_THAT(refused, fails_with(errc::conflict));
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("3"));
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("4"));
  EXPECT_THAT(held->release(), succeeds());
  // Nobody holds or waits: the next one decides again.
  const auto decides = four.acquire({.wait = 0s});
  if (keeps_its_number(a)) {
    EXPECT_THAT(decides, fails_with(errc::conflict));
  } else {
    EXPECT_THAT(decides, succeeds());
  }
}

TEST_P(semaphores, a_new_size_counts_when_nobody_holds_or_waits) {
  // Broken: a resize over-grants while old permits are out.
  const client a = open();
  if (!permits(a)) return;
  semaphore api(a, "api", {.max = 1});
  auto held = api.acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(api.resize(0), fails_with(errc::invalid));
  EXPECT_THAT(api.resize(1'000'001), fails_with(errc::invalid));
  EXPECT_EQ(api.max(), 1U);
  ASSERT_THAT(api.resize(2), succeeds());
  EXPECT_EQ(api.max(), 2U);
  EXPECT_THAT(api.acquire({.wait = 0s}), fails_with(errc::conflict));
  EXPECT_THAT(held->release(), succeeds());
  if (keeps_its_number(a)) return;
  auto one = api.acquire({.wait = 0s});
  auto two = api.acquire({.wait = 0s});
  EXPECT_THAT(one, succeeds());
  EXPECT_THAT(two, succeeds());
}

TEST_P(semaphores, what_can_never_be_granted_is_refused) {
  // Broken: a claim for six of five waits forever.
  const client a = open();
  EXPECT_EQ(thrown_by([&] { semaphore(a, "api", {.max = 0}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { semaphore(a, "api", {.max = 1'000'001}); }), "invalid");
  EXPECT_EQ(thrown_by([&] { semaphore(a, "", {.max = 1}); }), "invalid");
  semaphore api(a, "api", {.max = 5});
  EXPECT_THAT(api.acquire({}, {}, 6), fails_with(errc::invalid));
  EXPECT_THAT(api.acquire({}, {}, 0), fails_with(errc::invalid));
  reply<lease> answer;
  api.async_acquire({}, {}, answer.callback(), 6);
  EXPECT_THAT(answer.future.get(), fails_with(errc::invalid));
}

TEST_P(semaphores, permits_that_nobody_gave_back_come_back) {
  // Broken: every crash leaves the pool one smaller, until it is empty.
  const client a = open();
  if (!permits(a)) return;
  semaphore api(a, "api", {.max = 2, .lock = {.ttl = 200ms, .renew = renew::never}});
  auto one = api.acquire();
  auto two = api.acquire();
  ASSERT_THAT(one, succeeds());
  ASSERT_THAT(two, succeeds());
  EXPECT_THAT(api.acquire({.wait = patience}), succeeds());
  EXPECT_FALSE(one->valid());
  EXPECT_TRUE(eventually([&] { return one->lost().stop_requested(); }));
}

TEST_P(semaphores, never_more_inside_than_permits) {
  // Broken: the limit itself, with many threads.
  const client a = open();
  const client b = open();
  if (!permits(a)) return;
  constexpr int most = 3;
  constexpr int threads = 8;
  const int turns = rounds(10, 25);
  std::atomic<int> inside{0};
  std::atomic<int> too_many{0};
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&, i] {
        semaphore api(i % 2 == 0 ? a : b, "api", {.max = most});
        const auto wanted = static_cast<std::uint32_t>(1 + i % 2);
        for (int round = 0; round < turns; ++round) {
          const auto held = api.acquire({.wait = 4 * patience}, {}, wanted);
          ASSERT_THAT(held, succeeds());
          if (inside.fetch_add(static_cast<int>(wanted)) + static_cast<int>(wanted) > most) {
            too_many.fetch_add(1);
          }
          std::this_thread::yield();
          inside.fetch_sub(static_cast<int>(wanted));
          done.fetch_add(1);
        }
      });
    }
  }
  EXPECT_EQ(too_many.load(), 0);
  EXPECT_EQ(done.load(), threads * turns);
  EXPECT_TRUE(becomes_free(a, "api"));
}

}  // namespace
}  // namespace holdfast::test
