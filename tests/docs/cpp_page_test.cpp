// The C++ of docs/cpp.md, word for word (code_blocks.py cuts it out): it compiles with the code
// that a reader would put around it, and does what the page says.
#include "support/eventually.hpp"
#include "support/task.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/holdfast.hpp>

#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// The surroundings of the page's examples.
class cpp_page : public testing::Test {
 protected:
  int fail(const std::string& why) {
    logged_ = why;
    return 1;
  }
  void sell(int /*item*/, fence_token fence) { sold_ = fence; }
  void read(fence_token fence, const std::stop_token& lost) {
    read_ = fence;
    EXPECT_FALSE(lost.stop_requested());
  }
  void book(const std::stop_token& lost) { booked_ = !lost.stop_requested(); }
  void too_busy() { busy_ = true; }
  void log(const std::string& text) { logged_ = text; }
  static void alarm() { alarmed_.raise(); }
  void still_ours() { ours_ = true; }
  void done() { done_.raise(); }

  task in_coroutine(mutex& stock) {
#include <docs/cpp_10.inc>
    logged_ = released ? "released" : released.error().message();
  }
  task on_pool(mutex& stock, executor pool, std::thread::id& on) {
#include <docs/cpp_11.inc>
    on = std::this_thread::get_id();
  }
  asio::awaitable<void> work(const lease& held) {
    ours_ = held.valid();
    co_return;
  }
  asio::awaitable<void> in_asio(mutex& stock) {
    using namespace asio::experimental::awaitable_operators;
#include <docs/cpp_12.inc>
  }

  static constexpr int item = 42;
  std::string logged_;
  fence_token sold_;
  fence_token read_;
  bool booked_ = false;
  bool busy_ = false;
  bool ours_ = false;
  static inline flag alarmed_;
  flag done_;
};

TEST_F(cpp_page, a_client_and_a_lock) {
  // Broken: the first lines of the page.
  const auto made = [this]() -> int {
#include <docs/cpp_1.inc>
    EXPECT_EQ(stock.name(), "stock/42");
    return 0;
  };
  EXPECT_EQ(made(), 0) << logged_;
}

TEST_F(cpp_page, two_faces) {
  // Broken: a lease or a guard, used as on the page.
  const client client = client::open("memory:").value();
  mutex stock(client, "stock/42");
  shared_mutex price(client, "price/42");
#include <docs/cpp_2.inc>
  EXPECT_GT(sold_.value(), 0U);
  EXPECT_FALSE(busy_);
  const fence_token before = sold_;
#include <docs/cpp_3.inc>
  EXPECT_GT(sold_, before);
  EXPECT_GT(read_.value(), 0U);
}

TEST_F(cpp_page, names_from_outside) {
  // Broken: an untrusted name throws, or a vector of locks does not compile.
  const client client = client::open("memory:").value();
  const std::vector<std::string> names_from_outside{"one", "t\two", "three"};
#include <docs/cpp_4.inc>
  EXPECT_EQ(shelf.size(), 2U);
  EXPECT_NE(logged_.find("control characters"), std::string::npos);
}

TEST_F(cpp_page, several_locks) {
  // Broken: a mixed multi_lock.
  const client client = client::open("memory:").value();
  mutex stock(client, "stock/42");
  shared_mutex price(client, "price/42");
  semaphore partner(client, "partner", {.max = 3});
#include <docs/cpp_5.inc>
  EXPECT_TRUE(booked_);
}

TEST_F(cpp_page, reacting_to_loss) {
  // Broken: a way to learn of a loss.
  client client = client::open("memory:").value();
  {
#include <docs/cpp_7.inc>
    EXPECT_EQ(nightly.name(), "nightly");
  }
  const lease lease = mutex(client, "stock/42").acquire().value();
#include <docs/cpp_6.inc>
  EXPECT_TRUE(ours_);
  ASSERT_TRUE(client.revoke("stock/42", revocation::force).has_value());
  EXPECT_TRUE(alarmed_.wait(patience));
}

TEST_F(cpp_page, callbacks_and_executors) {
  // Broken: then(), or an executor that is not used.
  {
    const client client = client::open("memory:").value();
    mutex stock(client, "stock/42");
#include <docs/cpp_8.inc>
    EXPECT_TRUE(done_.wait(patience));
    EXPECT_GT(sold_.value(), 0U);
  }
  asio::thread_pool threads(1);
  struct {
    asio::thread_pool& threads;
    void post(move_only_function<void()> task) { asio::post(threads, std::move(task)); }
  } pool{threads};
#include <docs/cpp_9.inc>
  ASSERT_TRUE(client.has_value());
  flag ran;
  mutex(*client, "stock/42").async_acquire().then([&](const result<lease>& lease) {
    EXPECT_TRUE(threads.get_executor().running_in_this_thread());
    EXPECT_TRUE(lease.has_value());
    ran.raise();
  });
  EXPECT_TRUE(ran.wait(patience));
  client->close();
  threads.join();
}

TEST_F(cpp_page, coroutines) {
  // Broken: co_await as the page shows it.
  const client client = client::open("memory:").value();
  mutex stock(client, "stock/42");
  {
    const task ends = in_coroutine(stock);
    ASSERT_TRUE(ends.finishes());
    EXPECT_EQ(logged_, "released");
  }
  asio::thread_pool threads(1);
  std::thread::id on;
  const auto post = [&threads](move_only_function<void()> work) {
    asio::post(threads, std::move(work));
  };
  const task ends = on_pool(stock, post, on);
  ASSERT_TRUE(ends.finishes());
  threads.join();
  EXPECT_NE(on, std::this_thread::get_id());
}

TEST_F(cpp_page, asio) {
  // Broken: the loss and the work do not race.
  asio::io_context io;
  client client = client::open("memory:").value();
  mutex stock(client, "stock/42");
  auto ends = asio::co_spawn(io, in_asio(stock), asio::use_future);
  io.run();
  ends.get();
  EXPECT_TRUE(ours_);
  client.close();
}

TEST_F(cpp_page, errors_observers_and_operators) {
  // Broken: what the page says of errors, events and the calls for operators.
  {
    client client = client::open("memory:", {.payload = "host:17:backup"}).value();
    mutex stock(client, "stock/42");
    const lease held = mutex(client, "stock/42").acquire().value();
#include <docs/cpp_13.inc>
    EXPECT_EQ(logged_.rfind("busy", 0), 0U) << logged_;
#include <docs/cpp_15.inc>
    EXPECT_EQ(logged_, "host:17:backup");
  }
#include <docs/cpp_14.inc>
  ASSERT_TRUE(client.has_value());
  EXPECT_TRUE(mutex(*client, "stock/42").acquire().has_value());
  EXPECT_TRUE(eventually([&] { return metrics->grants == 1; }));
}

}  // namespace
}  // namespace holdfast::test
