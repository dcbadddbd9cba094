// The embedded store's fast path: a lock that only one store uses is taken and released from
// memory, by one statement that checks what it remembers. Tested here: what others did meanwhile is
// never missed.
#include "integration/sqlite_harness.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <string>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

// Takes and releases; returns the fence.
std::uint64_t use(const embedded_client& client, const std::string& name = "stock") {
  const auto claim = client.claim(name);
  const auto answer = client.attempt(claim);
  if (!granted(answer) || client.leave(claim).value() != departure::was_holder) return 0;
  return fence(answer);
}

TEST(sqlite_fast_path, sees_that_another_holds_what_was_free) {
  // Broken: a store trusts its memory, and two hold one lock.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  for (int round = 0; round < 20; ++round) {
    ASSERT_NE(use(first), 0U);
    const auto held = second.claim();
    ASSERT_TRUE(granted(second.attempt(held)));
    auto tries = first.claim();
    tries->queued = false;
    ASSERT_FALSE(granted(first.attempt(tries)));
    ASSERT_EQ(second.leave(held).value(), departure::was_holder);
  }
}

TEST(sqlite_fast_path, gives_fences_that_grow_across_stores) {
  // Broken: a fence from memory equals one that another store has issued meanwhile.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  std::uint64_t last = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t now = use(round % 7 < 4 ? first : second);
    ASSERT_GT(now, last);
    last = now;
  }
}

TEST(sqlite_fast_path, hands_over_to_a_new_waiter) {
  // Broken: a release from memory does not see that somebody queued, who then waits forever.
  const embedded_file file;
  const embedded_client first(file.path());
  const embedded_client second(file.path());
  for (int round = 0; round < 20; ++round) {
    const auto held = first.claim();
    ASSERT_TRUE(granted(first.attempt(held)));
    const auto waiter = second.fair_claim();
    const auto wakeup = std::make_shared<noting_wakeup>();
    ASSERT_TRUE(queued(second.attempt(waiter, wakeup)));
    ASSERT_EQ(first.leave(held).value(), departure::was_holder);
    ASSERT_TRUE(wakeup->is_granted());
    ASSERT_EQ(second.leave(waiter).value(), departure::was_holder);
  }
}

TEST(sqlite_fast_path, does_not_write_into_the_row_of_another_name) {
  // Broken: a name was forgotten, its number given to another name, and that one becomes held.
  const embedded_file file;
  const embedded_client client(file.path());
  ASSERT_NE(use(client), 0U);
  raw_database raw(file.path());
  raw.execute(
      "UPDATE resources SET key = CAST('/other' AS BLOB) WHERE key = CAST('/stock' AS BLOB)");
  const auto held = client.claim();
  ASSERT_TRUE(granted(client.attempt(held)));
  EXPECT_TRUE(client.inspect("other").holders.empty());
  EXPECT_EQ(client.inspect("stock").holders.size(), 1U);
}

TEST(sqlite_fast_path, serves_hundreds_of_names_that_are_used_in_turn) {
  // Broken: each name is forgotten before it is used again, and every lock costs three times as much.
  const embedded_file file;
  const embedded_client client(file.path());
  constexpr int names = 300;
  for (int i = 0; i < 2 * names; ++i) {
    const auto claim = client.claim("job/" + std::to_string(i % names));
    ASSERT_TRUE(granted(client.attempt(claim)));
    ASSERT_TRUE(client.leave(claim));
  }
  EXPECT_EQ(raw_database(file.path()).number("SELECT count(*) FROM resources"), names);
}

TEST(sqlite_fast_path, tells_an_observer_that_came_meanwhile) {
  // Broken: `watch` misses a lock that its store uses from memory.
  const embedded_file file;
  const embedded_client client(file.path());
  const embedded_client onlooker(file.path());
  ASSERT_NE(use(client), 0U);
  std::promise<spi::store_event> heard;
  std::atomic<bool> told{false};
  const auto inline_holder =
      onlooker.store().observe({"", "stock"}, [&](const spi::store_event& event) {
        if (!told.exchange(true)) heard.set_value(event);
      });
  ASSERT_TRUE(inline_holder);
  ASSERT_NE(use(client), 0U);
  auto future = heard.get_future();
  ASSERT_EQ(future.wait_for(generous), std::future_status::ready);
  EXPECT_EQ(future.get().kind, spi::event_kind::granted);
}

TEST(sqlite_fast_path, keeps_a_rows_size) {
  // Broken: each time a lock is taken its row moves within its page, or to another.
  const embedded_file file;
  const embedded_client client(file.path());
  ASSERT_NE(use(client), 0U);
  raw_database raw(file.path());
  const std::string size = "SELECT length(body) FROM resources";
  const std::int64_t free = raw.number(size);
  const auto held = client.claim();
  ASSERT_TRUE(granted(client.attempt(held)));
  EXPECT_EQ(raw.number(size), free);
  auto longer = client.claim("more");
  longer->payload = std::string(200, 'p');
  ASSERT_TRUE(granted(client.attempt(longer)));
  EXPECT_EQ(client.inspect("more").holders.front().payload, longer->payload);
}

TEST(sqlite_fast_path, sees_a_file_that_was_moved_away) {
  // Broken: verbs that no longer follow the path continue in a file that nobody else opens.
  for (const bool with_its_folder : {false, true}) {
    const temporary_folder place;
    const fs::path folder = place.path() / "locks";
    fs::create_directory(folder);
    const embedded_client client((folder / "locks.db").string());
    ASSERT_NE(use(client), 0U);
    if (with_its_folder) {
      fs::rename(folder, place.path() / "away");
    } else {
      fs::rename(folder / "locks.db", folder / "away.db");
    }
    const time_point limit = clock::now() + generous;
    auto answer = client.attempt(client.claim("another"));
    while (answer && clock::now() < limit) answer = client.attempt(client.claim("another"));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error(), errc::unavailable);
  }
}

}  // namespace
}  // namespace holdfast::test
