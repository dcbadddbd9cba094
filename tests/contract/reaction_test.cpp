// What a holder can do about a loss besides lost(): block, poll a descriptor, co_await.
#include "contract/contract.hpp"
#include "support/forked_process.hpp"
#include "support/task.hpp"

#include <holdfast/asio.hpp>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>
#include <poll.h>

#include <shared_mutex>
#include <stdexcept>
#include <thread>

namespace holdfast::test {
namespace {

HOLDFAST_ON_EVERY_STORE(reaction);

bool readable(int descriptor, std::chrono::milliseconds limit) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) == 1;
}

constexpr auto long_enough = std::chrono::duration_cast<std::chrono::milliseconds>(patience);

TEST_P(reaction, a_loss_ends_the_wait_for_it_and_shows_on_the_descriptor) {
  // Broken: a worker that sleeps until its lock is lost sleeps on.
  const client a = open();
  auto held = mutex(a, "stock", told_soon).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  EXPECT_THAT(held->wait_lost(1ms), fails_with(errc::timed_out));
  const auto descriptor = held->lost_fd();
  ASSERT_THAT(descriptor, succeeds());
  EXPECT_EQ(held->lost_fd(), descriptor);
  EXPECT_FALSE(readable(*descriptor, 0ms));
  take_away(open(), "stock");
  EXPECT_THAT(held->wait_lost(patience), succeeds());
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(static_cast<bool>(*held));
  EXPECT_TRUE(readable(*descriptor, long_enough));
  EXPECT_THAT(held->wait_lost(), succeeds());
}

task until_lost(const lease& held, std::string& out) {
  auto answer = co_await async_lost(held);
  out = code_of(answer);
}

TEST_P(reaction, a_coroutine_waits_for_the_loss) {
  // Broken: the coroutine never resumes, or before the loss.
  const client a = open();
  auto held = mutex(a, "stock", told_soon).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  std::string out = "waiting";
  const task waiting = until_lost(*held, out);
  EXPECT_FALSE(waiting.finished());
  take_away(open(), "stock");
  ASSERT_TRUE(waiting.finishes());
  EXPECT_EQ(out, "ok");
}

TEST(reaction_in_memory, a_release_ends_the_waits_for_the_loss) {
  // Broken: a thread that waits for the loss of a lease that was released waits forever.
  const client a = client::open("memory:").value();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  std::string out = "waiting";
  const task waiting = until_lost(*held, out);
  // The lease moves to the thread that releases it; the wait continues on its internal state.
  std::promise<result<void>> told;
  async_lost(*held).then([&](result<void> answer) { told.set_value(std::move(answer)); });
  EXPECT_THAT(held->release(), succeeds());
  EXPECT_THAT(told.get_future().get(), fails_with(errc::not_held));
  ASSERT_TRUE(waiting.finishes());
  EXPECT_EQ(out, "not held");
  EXPECT_THAT(held->wait_lost(), fails_with(errc::not_held));
  EXPECT_THAT(held->lost_fd(), fails_with(errc::not_held));
}

TEST(reaction_in_memory, a_forked_child_does_not_signal_its_parents_descriptor) {
  // Broken: a child that asks for the descriptor, or for the loss, makes its parent see a loss.
  const client a = client::open("memory:").value();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  const int descriptor = held->lost_fd().value();
  forked_process child([&] {
    const auto refused = held->lost_fd();
    async_lost(*held).then([](const result<void>&) {});
    if (refused || refused.error() != errc::lost)
      throw std::runtime_error("the child got a descriptor");
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(readable(descriptor, 0ms));
  EXPECT_TRUE(held->valid());
}

TEST(reaction_in_memory, a_token_ends_the_wait) {
  // Broken: wait_lost() cannot be stopped.
  const client a = client::open("memory:").value();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  std::stop_source stop;
  const std::jthread stops([&] { stop.request_stop(); });
  EXPECT_THAT(held->wait_lost(forever, stop.get_token()), fails_with(errc::cancelled));
  EXPECT_TRUE(held->valid());
}

TEST(reaction_in_memory, a_destroyed_coroutine_is_not_resumed) {
  // Broken: the loss resumes a coroutine that is not there any more.
  client a = client::open("memory:").value();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  std::string out = "waiting";
  {
    task waiting = until_lost(*held, out);
    waiting.destroy();
  }
  ASSERT_THAT(a.revoke("stock", revocation::force), succeeds());
  EXPECT_THAT(held->wait_lost(patience), succeeds());
  EXPECT_EQ(out, "waiting");
}

asio::awaitable<std::string> first_of(const lease& held, duration work) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer timer(co_await asio::this_coro::executor, work);
  const auto first =
      co_await (async_lost(held, asio::use_awaitable) || timer.async_wait(asio::use_awaitable));
  co_return first.index() == 0 ? "lost" : "done";
}

TEST(reaction_in_memory, the_loss_races_with_work_in_asio) {
  // Broken: `||` does not compile, does not end the work at the loss, or hangs when the work is done.
  client a = client::open("memory:").value();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  asio::io_context io;
  auto done = asio::co_spawn(io, first_of(*held, 1ms), asio::use_future);
  io.run();
  EXPECT_EQ(done.get(), "done");
  io.restart();
  auto lost = asio::co_spawn(io, first_of(*held, 1h), asio::use_future);
  ASSERT_THAT(a.revoke("stock", revocation::force), succeeds());
  io.run();
  EXPECT_EQ(lost.get(), "lost");
  a.close();
}

TEST(reaction_in_memory, a_reader_of_the_std_face_has_its_lease) {
  // Broken: a std::shared_lock has no fence and no lost().
  const client a = client::open("memory:").value();
  shared_mutex price(a, "price");
  EXPECT_FALSE(price.shared_lease().valid());
  {
    const std::shared_lock reading(price);
    EXPECT_TRUE(price.shared_lease().valid());
    EXPECT_GT(price.shared_lease().fence().value(), 0U);
    EXPECT_FALSE(price.shared_lease().lost().stop_requested());
    std::jthread([&] { EXPECT_FALSE(price.shared_lease().valid()); }).join();
  }
  EXPECT_FALSE(price.shared_lease().valid());
}

}  // namespace
}  // namespace holdfast::test
