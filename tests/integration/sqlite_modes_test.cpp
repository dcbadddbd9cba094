// The modes of the embedded store's claims: readers, writers, permits, and the changes between them.
#include "integration/sqlite_harness.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::test {
namespace {

TEST(sqlite_modes, readers_share_and_a_writer_keeps_later_readers_out) {
  // Broken: readers exclude each other, or starve a writer.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto reader = [&] {
    auto made = client.fair_claim();
    made->mode = spi::mode::shared;
    return made;
  };
  const auto first = reader();
  const auto second = reader();
  const auto late = reader();
  const auto later = reader();
  const auto writer = client.fair_claim();
  const auto write = std::make_shared<noting_wakeup>();
  const auto read = std::make_shared<noting_wakeup>();
  const auto read_too = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(first)));
  ASSERT_TRUE(granted(client.attempt(second)));
  ASSERT_TRUE(queued(client.attempt(writer, write)));
  ASSERT_TRUE(queued(client.attempt(late, read)));
  ASSERT_TRUE(queued(client.attempt(later, read_too)));
  static_cast<void>(client.leave(first));
  EXPECT_FALSE(write->grant());
  static_cast<void>(client.leave(second));
  ASSERT_TRUE(write->is_granted());
  EXPECT_FALSE(read->grant());
  static_cast<void>(client.leave(writer));
  EXPECT_TRUE(read->is_granted());
  EXPECT_TRUE(read_too->is_granted());
}

TEST(sqlite_modes, downgrade_lets_readers_in_and_no_writer_between) {
  // Broken: a writer that becomes a reader is overtaken by another writer, or readers sleep on.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto holder = client.claim();
  auto reader = client.claim();
  reader->mode = spi::mode::shared;
  const auto read = std::make_shared<noting_wakeup>();
  const auto write = std::make_shared<noting_wakeup>();
  const auto writer = client.fair_claim();
  const auto taken = client.attempt(holder);
  ASSERT_TRUE(queued(client.attempt(reader, read)));
  ASSERT_TRUE(queued(client.attempt(writer, write)));
  const auto changed = client.change(holder, spi::mode::shared);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_GT(changed->fence.value(), fence(taken));
  EXPECT_TRUE(read->is_granted());
  EXPECT_FALSE(write->grant());
  EXPECT_EQ(client.change(holder, spi::mode::shared)->fence, changed->fence);
  EXPECT_EQ(client.change(holder, spi::mode::exclusive).error(), errc::would_deadlock);
  static_cast<void>(client.leave(reader));
  EXPECT_TRUE(client.change(holder, spi::mode::exclusive));
  static_cast<void>(client.leave(holder));
  EXPECT_TRUE(write->is_granted());
}

TEST(sqlite_modes, permits_are_never_given_twice) {
  // Broken: a semaphore of two with three inside, or a large claim that small ones starve.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto permits = [&](std::uint32_t count, std::uint32_t max = 3) {
    auto made = client.fair_claim();
    made->mode = spi::mode::permit;
    made->permits = count;
    made->max = max;
    return made;
  };
  const auto one = permits(1);
  const auto two = permits(2);
  const auto three = permits(3);
  const auto all = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(one)));
  ASSERT_TRUE(granted(client.attempt(two)));
  ASSERT_TRUE(queued(client.attempt(three, all)));
  EXPECT_EQ(client.attempt(permits(1, 4)).error(), errc::conflict);
  EXPECT_EQ(client.attempt(permits(4)).error(), errc::invalid);
  EXPECT_EQ(client.attempt(client.claim()).error(), errc::name_conflict);
  static_cast<void>(client.leave(one));
  EXPECT_FALSE(all->grant());
  static_cast<void>(client.leave(two));
  EXPECT_TRUE(all->is_granted());
  static_cast<void>(client.leave(three));
  EXPECT_TRUE(granted(client.attempt(permits(1, 4))));
}

TEST(sqlite_modes, a_hold_ends_by_time_however_many_others_there_are) {
  // Broken: behind ten thousand readers nobody looks at it, and it blocks every writer forever.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto reader = [&client] {
    auto made = client.claim();
    made->mode = spi::mode::shared;
    return made;
  };
  std::vector<std::shared_ptr<spi::claim>> readers;
  for (int i = 0; i < 10'001; ++i) {
    readers.push_back(reader());
    ASSERT_TRUE(granted(client.attempt(readers.back())));
  }
  const auto last = reader();
  last->renewed = false;
  last->ttl = 10ms;
  ASSERT_TRUE(granted(client.attempt(last)));
  ASSERT_TRUE(eventually([&] { return client.inspect().holders.size() == readers.size(); }));
  auto writer = client.claim();
  writer->queued = false;
  ASSERT_FALSE(granted(client.attempt(writer)));  // looks for what has ended
  for (const auto& each : readers) ASSERT_TRUE(client.leave(each));
  EXPECT_TRUE(granted(client.attempt(writer)));
}

}  // namespace
}  // namespace holdfast::test
