// The turn of a session: a mutex with a deadline.
#ifdef HOLDFAST_WITH_SQLITE

#include "stores/sqlite/session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace holdfast::sqlite {
namespace {

TEST(sqlite_turn, is_waited_for_without_an_end) {
  // Broken: a sum overflows, which UBSan reports, and the waiting thread keeps a core busy.
  turn whose;
  ASSERT_TRUE(whose.take(time_point::max()));
  std::atomic<bool> waits{false};
  std::thread other([&] {
    waits.store(true);
    waits.notify_one();
    EXPECT_TRUE(whose.take(time_point::max()));
    whose.give();
  });
  waits.wait(false);
  std::this_thread::yield();
  whose.give();
  other.join();
}

}  // namespace
}  // namespace holdfast::sqlite

#endif
