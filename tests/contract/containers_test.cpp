// Locks as values: made from a name that nobody has checked, kept in a vector, mixed in a multi_lock.
#include "contract/contract.hpp"

#include <mutex>
#include <shared_mutex>
#include <vector>

namespace holdfast::test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<mutex> &&
              std::is_nothrow_move_assignable_v<mutex>);
static_assert(std::is_nothrow_move_constructible_v<shared_mutex>);
static_assert(std::is_nothrow_move_constructible_v<recursive_mutex>);
static_assert(std::is_nothrow_move_constructible_v<semaphore>);
static_assert(std::is_nothrow_move_constructible_v<multi_lock>);
static_assert(std::is_move_assignable_v<latch> && std::is_move_assignable_v<election>);
static_assert(!std::is_copy_constructible_v<mutex> && !std::is_copy_constructible_v<shared_mutex>);

TEST(lock_values, a_bad_name_is_an_answer) {
  // Broken: a name from outside must be checked by hand, or throws.
  const client a = client::open("memory:").value();
  const std::string bad = "a\nb";
  EXPECT_THAT(mutex::make(a, bad), fails_with(errc::invalid));
  EXPECT_THAT(shared_mutex::make(a, bad), fails_with(errc::invalid));
  EXPECT_THAT(recursive_mutex::make(a, bad), fails_with(errc::invalid));
  EXPECT_THAT(semaphore::make(a, bad, {.max = 2}), fails_with(errc::invalid));
  EXPECT_THAT(semaphore::make(a, "api", {.max = 0}), fails_with(errc::invalid));
  EXPECT_THAT(latch::make(a, bad), fails_with(errc::invalid));
  EXPECT_THAT(election::make(a, bad, "host"), fails_with(errc::invalid));
  EXPECT_THAT(multi_lock::make({}), fails_with(errc::invalid));
  EXPECT_THAT(mutex::make(a, "stock", {.ttl = 1ms}), fails_with(errc::invalid));
  auto made = mutex::make(a, "stock");
  ASSERT_THAT(made, succeeds());
  EXPECT_EQ(made->name(), "stock");
  const std::scoped_lock guard(*made);
  EXPECT_TRUE(made->lease().valid());
}

TEST(lock_values, locks_live_in_a_vector) {
  // Broken: a vector of locks does not compile, or the locks in it forget their names as it grows.
  const client a = client::open("memory:").value();
  std::vector<mutex> shelf;
  std::vector<shared_mutex> prices;
  std::vector<semaphore> pools;
  for (int i = 0; i < 20; ++i) {
    shelf.emplace_back(a, "stock/" + std::to_string(i));
    prices.emplace_back(a, "price/" + std::to_string(i));
    pools.emplace_back(a, "pool/" + std::to_string(i), semaphore_options{.max = 2});
  }
  shelf.erase(shelf.begin());
  EXPECT_EQ(shelf.front().name(), "stock/1");
  {
    const std::scoped_lock both(shelf[0], shelf[7]);
    EXPECT_TRUE(shelf[0].lease().valid());
    EXPECT_THAT(mutex(a, "stock/8").acquire({.wait = 0s}), fails_with(errc::busy));
    const std::shared_lock reading(prices[3]);
    EXPECT_TRUE(prices[3].shared_lease().valid());
    EXPECT_THAT(pools[5].acquire({.wait = 0s}), succeeds());
  }
  EXPECT_EQ(pools[5].max(), 2U);
  EXPECT_TRUE(becomes_free(a, "stock/8"));
}

TEST(lock_values_death, a_locked_lock_cannot_be_moved) {
  // Broken: a guard unlocks a lock that moved away under it.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const client a = client::open("memory:").value();
        mutex stock(a, "stock");
        stock.lock();
        const mutex moved(std::move(stock));
      },
      "a mutex was moved while it was locked");
}

TEST(lock_values, a_multi_lock_takes_writers_readers_and_permits) {
  // Broken: only plain mutexes can be taken together.
  const client a = client::open("memory:").value();
  mutex stock(a, "stock");
  shared_mutex price(a, "price");
  shared_mutex order(a, "order");
  semaphore api(a, "api", {.max = 3});
  multi_lock all({stock, reading(price), order, permits(api, 2)});
  {
    auto leases = all.acquire({.wait = patience});
    ASSERT_THAT(leases, succeeds());
    EXPECT_EQ(leases->leases()[1].name(), "price");
    EXPECT_THAT(price.acquire_shared({.wait = 0s}), succeeds());
    EXPECT_THAT(price.acquire({.wait = 0s}), fails_with(errc::busy));
    EXPECT_THAT(order.acquire_shared({.wait = 0s}), fails_with(errc::busy));
    EXPECT_THAT(api.acquire({.wait = 0s}, {}, 2), fails_with(errc::busy));
    EXPECT_THAT(api.acquire({.wait = 0s}), succeeds());
  }
  EXPECT_EQ(*api.available(), 3U);
  {
    const std::scoped_lock guard(all);
    EXPECT_EQ(thrown_by([&] { order.lock(); }), "would deadlock");
    EXPECT_THAT(api.acquire({.wait = 0s}), succeeds());
  }
  EXPECT_THAT(multi_lock::make({price, reading(price)}), fails_with(errc::invalid));
  EXPECT_THAT(multi_lock({permits(api, 4)}).acquire(), fails_with(errc::invalid));
}

}  // namespace
}  // namespace holdfast::test
