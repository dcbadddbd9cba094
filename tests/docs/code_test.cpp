// The C++ of README.md and docs/, word for word (code_blocks.py cuts it out): it compiles with the
// code that a reader would put around it, and does what the page says.
#include "support/task.hpp"
#include "support/temporary_folder.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <mutex>
#include <string>

#ifdef HOLDFAST_WITH_POSTGRESQL
#include <holdfast/postgresql.hpp>

#include <libpq-fe.h>
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include <holdfast/mariadb.hpp>

#include <mysql.h>
#endif

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// The surroundings of the README's examples: a shop.
struct shop {
  std::string problem;
  fence_token order_fence{0};
  fence_token sale_fence{0};
  bool busy = false;

  int fail(const std::string& why) {
    problem = why;
    return 1;
  }
  void write(int /*order*/, fence_token fence) { order_fence = fence; }
  void sell(int /*item*/, fence_token fence, const std::stop_token& /*stop*/) {
    sale_fence = fence;
  }
  void too_busy() { busy = true; }

  int buy(const std::string& url) {
    const int order = 1;
    const int item = 42;
    {
#include <docs/README_1.inc>
    }
    const client client = client::open(url).value();
    mutex stock(client, "stock/42");
#include <docs/README_2.inc>
    return 0;
  }

  void write(fence_token fence) { order_fence = fence; }

  // Step 10 of the tutorial.
  int order_once() {
#include <docs/tutorial_1.inc>
    return 0;
  }
};

task wait_in_coroutine(mutex& stock, fence_token& got) {
#include <docs/README_coroutine.inc>
  if (lease) got = lease->fence();
}

TEST(readme, its_lines_of_c_plus_plus_do_what_they_say) {
  // Broken: the first thing that a newcomer types does not compile, or does not lock.
  const temporary_folder folder;
  shop shop;
  EXPECT_EQ(shop.buy("sqlite:" + (folder.path() / "locks.db").string()), 0) << shop.problem;
  EXPECT_GT(shop.order_fence.value(), 0U);
  EXPECT_GT(shop.sale_fence, shop.order_fence);
  EXPECT_FALSE(shop.busy);
  EXPECT_THROW(shop.buy("frob:"), std::exception);
}

TEST(tutorial, its_lines_of_c_plus_plus_do_what_they_say) {
  // Broken: the last step of the tutorial does not compile, or does not lock.
  const temporary_folder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  shop shop;
  EXPECT_EQ(shop.order_once(), 0) << shop.problem;
  std::filesystem::current_path(before);
  EXPECT_GT(shop.order_fence.value(), 0U);
}

TEST(readme, its_coroutine_is_granted) {
  // Broken: as above, for co_await.
  const client client = client::open("memory:").value();
  mutex stock(client, "stock/42");
  fence_token got{0};
  const task waiting = wait_in_coroutine(stock, got);
  ASSERT_TRUE(waiting.finishes());
  EXPECT_GT(got.value(), 0U);
}

// The pages of the engines: their servers do not exist, so they are only compiled.
[[maybe_unused]] void open_each() {
  {
#include <docs/embedded_1.inc>
  } {
#include <docs/redis_1.inc>
  } {
#include <docs/zookeeper_1.inc>
  } {
#include <docs/postgresql_1.inc>
  }
}

#ifdef HOLDFAST_WITH_POSTGRESQL
[[maybe_unused]] void sell_in_transaction(PGconn* connection) {
#include <docs/postgresql_2.inc>
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
[[maybe_unused]] void sell_in_transaction(MYSQL* connection) {
#include <docs/mariadb_1.inc>
}
#endif

}  // namespace
}  // namespace holdfast::test
