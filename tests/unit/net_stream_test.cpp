// The stream over a socket: bytes in order, complete, from any thread, and an end that is reported
// once.
#ifdef HOLDFAST_WITH_NET

#include "net/backoff.hpp"
#include "net/socket_stream.hpp"
#include "support/eventually.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using net::socket_stream;
using runtime::descriptor;

class user final : public net::stream_user {
 public:
  void received(std::string_view bytes) override {
    const std::scoped_lock lock(mutex_);
    text_ += bytes;
  }
  void ended(const error&) override { ++ends; }
  [[nodiscard]] std::string text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

  std::atomic<int> ends{0};

 private:
  mutable std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

struct net_stream : testing::Test {
  std::shared_ptr<spi::reactor> reactor = spi::make_reactor();
  std::shared_ptr<user> mine;
  descriptor far;
  std::shared_ptr<socket_stream> near;

  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    far = descriptor(ends[1]);
    const int size = 4'096;  // small, so that writing blocks soon
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    near = std::make_shared<socket_stream>(reactor, descriptor(ends[0]), "peer");
    mine = std::make_shared<user>();
    near->start(mine);
  }
  std::string read_far(std::size_t size) const {
    std::string text(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t got = ::recv(far.get(), text.data() + have, size - have, 0);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
  }
};

TEST_F(net_stream, what_many_threads_send_arrives_whole) {
  // Broken: one thread's command would be torn apart by another's.
  constexpr int threads = 8;
  constexpr int rounds = 200;
  constexpr std::size_t size = 1'000;
  std::vector<std::jthread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([this, thread] {
      const std::string text(size, static_cast<char>('a' + thread));
      for (int round = 0; round < rounds; ++round) {
        near->queue(text);
        near->flush();
      }
    });
  }
  std::vector<int> seen(threads, 0);
  for (int i = 0; i < threads * rounds; ++i) {
    const std::string piece = read_far(size);
    ASSERT_EQ(piece, std::string(size, piece.front()));
    ++seen[static_cast<std::size_t>(piece.front() - 'a')];
  }
  EXPECT_EQ(seen, std::vector<int>(threads, rounds));
  EXPECT_TRUE(eventually([&] { return near->unsent() == 0; }));
}

TEST_F(net_stream, nothing_is_sent_before_it_is_flushed) {
  // Broken: commands that belong together would go out one by one.
  near->queue("one");
  near->queue("two");
  EXPECT_EQ(near->unsent(), 6U);
  char byte = 0;
  EXPECT_LT(::recv(far.get(), &byte, 1, MSG_DONTWAIT), 0);
  near->flush();
  EXPECT_EQ(read_far(6), "onetwo");
}

TEST_F(net_stream, the_end_is_reported_once_and_after_what_was_received) {
  // Broken: the last answer before a server's end would be lost, or the end never noticed.
  ASSERT_EQ(::send(far.get(), "last", 4, MSG_NOSIGNAL), 4);
  far.close();
  ASSERT_TRUE(eventually([&] { return mine->ends == 1; }));
  EXPECT_EQ(mine->text(), "last");
  near->queue("more");
  near->flush();
  EXPECT_EQ(mine->ends, 1);
}

TEST_F(net_stream, an_end_noticed_by_writing_is_reported_too) {
  // Broken: a writer's failure would be forgotten.
  ::shutdown(far.get(), SHUT_RD);
  for (int i = 0; i < 10; ++i) {
    near->queue("text");
    near->flush();
  }
  EXPECT_TRUE(eventually([&] { return mine->ends == 1; }));
}

TEST_F(net_stream, closing_from_any_thread_in_the_middle_of_everything_is_safe) {
  // Broken: a writer would write into somebody else's connection, or a callback come after the end.
  for (int round = 0; round < 200; ++round) {
    SetUp();
    std::jthread writer([this] {
      for (int i = 0; i < 50; ++i) {
        near->queue("some text");
        near->flush();
      }
    });
    std::jthread talker([this] {
      for (int i = 0; i < 20; ++i) (void)::send(far.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
    near->close();
    const std::string before = mine->text();
    writer.join();
    talker.join();
    ASSERT_EQ(mine->text(), before);
    ASSERT_EQ(mine->ends, 0);
  }
}

TEST_F(net_stream, a_user_that_is_gone_closes_it) {
  // Broken: a connection would stay open that nobody listens to.
  mine.reset();
  ASSERT_EQ(::send(far.get(), "x", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  EXPECT_LE(::recv(far.get(), &byte, 1, 0), 0);
}

TEST(net_backoff, it_doubles_up_to_the_longest_and_restarts_after_what_lasted) {
  // Broken (H31): many clients would come back at the same moment, or hammer what breaks at once.
  using namespace std::chrono_literals;
  net::backoff pause({50ms, 400ms});
  const auto longest = [&] {
    duration most{};
    for (std::uint64_t random = 0; random < 1'000; ++random) {
      net::backoff once = pause;
      most = std::max(most, once.next(random * 0x9E3779B97F4A7C15ULL));
    }
    (void)pause.next(0);
    return most;
  };
  for (const duration limit :
       {duration(50ms), duration(100ms), duration(200ms), duration(400ms), duration(400ms)}) {
    const duration most = longest();
    EXPECT_LE(most, limit);
    EXPECT_GT(most, limit / 2);
  }
  pause.succeeded(100ms);
  EXPECT_GT(longest(), 200ms) << "it broke sooner than the pause was long";
  pause.succeeded(400ms);
  EXPECT_LE(longest(), 50ms);
}

}  // namespace
}  // namespace holdfast::test

#endif
