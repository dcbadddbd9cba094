// Latches and observers of the embedded store.
#include "integration/sqlite_harness.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

spi::claim_id id_of(std::uint8_t number) {
  spi::claim_id id;
  id.bytes[0] = number;
  return id;
}

class diary {
 public:
  void write(const spi::store_event& event) {
    const std::lock_guard lock(mutex_);
    kinds_.push_back(event.kind);
    last_ = event;
    changed_.notify_all();
  }
  bool has(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, generous, [&] { return kinds_.size() >= count; });
  }
  std::vector<spi::event_kind> kinds() {
    const std::lock_guard lock(mutex_);
    return kinds_;
  }
  spi::store_event last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<spi::event_kind> kinds_;
  spi::store_event last_;
};

TEST(sqlite_latch, counts_each_id_once_and_never_below_zero) {
  // Broken: a repeated count-down opens the latch early.
  const embedded_file file;
  const embedded_client client(file.path());
  EXPECT_FALSE(client.read_latch("start")->count.has_value());
  EXPECT_EQ(client.count_down("start", 1, id_of(1)).error(), errc::not_held);
  EXPECT_EQ(client.set_latch("start", 3, id_of(2))->count, 3U);
  EXPECT_EQ(client.set_latch("start", 3, id_of(2))->count, 3U);
  EXPECT_EQ(client.set_latch("start", 5, id_of(3)).error(), errc::conflict);
  EXPECT_EQ(client.count_down("start", 1, id_of(4))->count, 2U);
  EXPECT_EQ(client.count_down("start", 1, id_of(4))->count, 2U);
  EXPECT_EQ(client.count_down("start", 9, id_of(5))->count, 0U);
  EXPECT_EQ(client.count_down("start", 1, id_of(6))->count, 0U);
  EXPECT_EQ(client.set_latch("start", 2, id_of(7))->count, 2U);
  EXPECT_EQ(client.count_down("start", 1, id_of(4))->count, 2U) << "an id of the count before";
  EXPECT_EQ(client.attempt(client.claim("start")).error(), errc::name_conflict);
  EXPECT_EQ(client.set_latch("start", 0, id_of(8)).error(), errc::invalid);
}

TEST(sqlite_latch, is_unset_again_after_its_life) {
  // Broken: an old latch lets the next run start at once, or keeps its name forever.
  const embedded_file file;
  const embedded_client client(file.path());
  ASSERT_TRUE(client.set_latch("start", 1, id_of(1), 50ms));
  const auto limit = clock::now() + generous;
  while (client.read_latch("start")->count && clock::now() < limit) std::this_thread::yield();
  EXPECT_FALSE(client.read_latch("start")->count);
  EXPECT_TRUE(granted(client.attempt(client.claim("start"))));
}

TEST(sqlite_latch, reports_a_waiter_of_another_client) {
  // Broken: a waiter sleeps past the opening of its latch.
  const embedded_file file;
  const embedded_client waits(file.path());
  const embedded_client counts(file.path());
  noting_wakeup told;
  const auto watch = waits.store().watch_latch({"", "start"}, [&] { told.notify(std::nullopt); });
  ASSERT_TRUE(watch);
  static_cast<void>(counts.set_latch("start", 1, id_of(1)));
  EXPECT_TRUE(told.is_freed());
  EXPECT_EQ(waits.read_latch("start")->count, 1U);
  static_cast<void>(counts.count_down("start", 1, id_of(2)));
  const auto limit = clock::now() + generous;
  while (waits.read_latch("start")->count != 0U && clock::now() < limit) {
    told.listen();
    told.is_freed();
  }
  EXPECT_EQ(waits.read_latch("start")->count, 0U);
}

TEST(sqlite_observer, hears_what_happens_in_other_clients) {
  // Broken: `holdfast watch` sees nothing, or sees claim ids.
  const embedded_file file;
  const embedded_client watches(file.path());
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  diary seen;
  diary all;
  const auto one = watches.store().observe({"", "stock"}, [&](const auto& e) { seen.write(e); });
  const auto every = watches.store().observe({"", ""}, [&](const auto& e) { all.write(e); });
  ASSERT_TRUE(one && every);
  const auto holder = first.claim();
  const auto waiter = first.fair_claim();
  static_cast<void>(first.attempt(holder));
  static_cast<void>(first.attempt(waiter));
  static_cast<void>(first.leave(holder));
  static_cast<void>(first.leave(waiter));
  static_cast<void>(first.attempt(first.claim("other")));
  using enum spi::event_kind;
  ASSERT_TRUE(seen.has(5));
  EXPECT_EQ(seen.kinds(), (std::vector{spi::event_kind::granted, spi::event_kind::queued, released,
                                       spi::event_kind::granted, released}));
  EXPECT_EQ(seen.last().claim, spi::public_id(waiter->id));
  EXPECT_EQ(seen.last().payload, "host:1:test");
  EXPECT_TRUE(seen.last().fence.has_value());
  EXPECT_TRUE(all.has(6));
  EXPECT_EQ(all.last().name, "other");
}

TEST(sqlite_observer, hears_no_more_once_its_subscription_ended) {
  // Broken: a callback into a destroyed object.
  const embedded_file file;
  const embedded_client client(file.path());
  diary seen;
  auto one = client.store().observe({"", "stock"}, [&](const auto& e) { seen.write(e); });
  const auto claim = client.claim();
  static_cast<void>(client.attempt(claim));
  ASSERT_TRUE(seen.has(1));
  one->reset();
  static_cast<void>(client.leave(claim));
  EXPECT_EQ(seen.kinds().size(), 1U);
}

TEST(sqlite_observer, keeps_no_name_that_is_not_in_use) {
  // Broken: while `holdfast serve` looks on, the file keeps a row for every name that was ever used.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto all = client.store().observe({"", ""}, [](const auto&) {});
  ASSERT_TRUE(all);
  for (int i = 0; i < 2'500; ++i) {
    const auto claim = client.claim("job/" + std::to_string(i));
    ASSERT_TRUE(granted(client.attempt(claim)));
    ASSERT_TRUE(client.leave(claim));
  }
  EXPECT_LT(raw_database(file.path()).number("SELECT count(*) FROM resources"), 1'300);
}

TEST(sqlite_latch, that_has_ended_is_forgotten_with_all_of_its_rows) {
  // Broken: the file keeps every latch whose name is not used again.
  const embedded_file file;
  const embedded_client client(file.path());
  for (int i = 0; i < 2'500; ++i) {
    ASSERT_TRUE(client.set_latch("job/" + std::to_string(i), 1, client.claim()->id, 1ms));
  }
  raw_database raw(file.path());
  for (const std::string table : {"resources", "latches", "latch_changes"}) {
    EXPECT_LT(raw.number("SELECT count(*) FROM " + table), 1'300) << table;
  }
}

}  // namespace
}  // namespace holdfast::test
