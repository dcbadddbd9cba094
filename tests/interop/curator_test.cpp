// holdfast and Apache Curator on the same paths: they exclude each other, in both orders of waiting.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

std::string jars() {
  std::string all;
  for (const char* each : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                           "guava", "slf4j-nop"}) {
    all += "/usr/share/java/" + std::string(each) + ".jar:";
  }
  return all;
}

// Once per process: `java CuratorPeer.java` compiles it at each start, which takes a second of a
// core.
std::filesystem::path compiled_peer() {
  static const temporary_folder folder;
  static const std::string said = [] {
    const char* source = std::getenv("HOLDFAST_SOURCE_DIR");
    if (source == nullptr) throw std::runtime_error("run by ctest, or set HOLDFAST_SOURCE_DIR");
    return run_program({"javac", "-cp", jars(), "-d", folder.path(),
                        std::string(source) + "/tests/interop/java/CuratorPeer.java"});
  }();
  return folder.path();
}

class curator : public testing::Test {
 protected:
  curator() { write(0); }

  [[nodiscard]] client open() const {
    return client::open("zookeeper://" + server_.hosts + root_).value();
  }
  [[nodiscard]] child_process peer(const std::string& kind, int rounds, int pause = 0) const {
    return child_process(
        {"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
         jars() + compiled_peer().string(), "CuratorPeer", server_.hosts, root_ + "/stock", kind,
         std::to_string(rounds), file().string(), std::to_string(pause)},
        folder_.path() / "log");
  }
  [[nodiscard]] std::filesystem::path file() const { return folder_.path() / "number"; }
  [[nodiscard]] std::string log() const {
    std::ifstream from(folder_.path() / "log");
    return {std::istreambuf_iterator<char>(from), {}};
  }
  [[nodiscard]] long read() const {
    long number = -1;
    std::ifstream(file()) >> number;
    return number;
  }
  void write(long number) const { std::ofstream(file()) << number; }
  void count() const { write(read() + 1); }

  // Both sides change the number, thousands of times in all, and none is lost.
  void count_together(const std::string& kind, int theirs, int ours,
                      const std::function<result<lease>(const client&)>& acquire) {
    constexpr int threads = 2;
    child_process other = peer(kind, theirs);
    ASSERT_TRUE(eventually([&] { return read() > 0 || !other.alive(); }, patience * 4)) << log();
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const client mine = open();
        std::uint64_t last = 0;
        for (int round = 0; round < ours; ++round) {
          const auto held = acquire(mine);
          ASSERT_TRUE(held) << held.error().message();
          EXPECT_GT(held->fence().value(), last);
          last = held->fence().value();
          count();
        }
      });
    }
    workers.clear();
    EXPECT_EQ(other.wait(), 0) << log();
    EXPECT_EQ(read(), theirs + threads * ours);
  }

  const shared_zookeeper server_ = use_shared_zookeeper();
  const std::string root_ = fresh_chroot();
  temporary_folder folder_;
};

TEST_F(curator, a_mutex_is_an_inter_process_mutex) {
  // Broken: a C++ service and a Java fleet are inside at the same time.
  count_together("mutex", 400, 200, [](const client& from) {
    return mutex(from, "stock").acquire({.wait = 4 * patience});
  });
}

TEST_F(curator, a_writer_is_a_writer_of_the_read_write_lock) {
  // Broken: the same with readers and writers.
  child_process reader = peer("read", 200);
  count_together("write", 300, 150, [](const client& from) {
    return shared_mutex(from, "stock").acquire({.wait = 4 * patience});
  });
  EXPECT_EQ(reader.wait(), 0) << log();
}

TEST_F(curator, a_reader_shares_with_readers_and_waits_for_writers) {
  // Broken: our readers see half of what a Java writer writes.
  child_process writer = peer("write", 200, 1);
  ASSERT_TRUE(eventually([&] { return read() > 0 || !writer.alive(); }, patience * 4)) << log();
  const client mine = open();
  // Until it ends, not until the number says so: without the lock the number may be read half
  // written.
  std::optional<int> status;
  while (!(status = writer.ended())) {
    const auto held = shared_mutex(mine, "stock").acquire_shared({.wait = 4 * patience});
    ASSERT_TRUE(held) << held.error().message();
    const long before = read();
    std::this_thread::yield();
    EXPECT_EQ(read(), before);
    EXPECT_GE(before, 0);
  }
  EXPECT_EQ(status, 0) << log();
  EXPECT_EQ(read(), 200);
}

TEST_F(curator, a_permit_is_a_lease_of_the_semaphore) {
  // Broken: there are more holders than permits.
  count_together("semaphore", 200, 100, [](const client& from) {
    return semaphore(from, "stock", {.max = 1}).acquire({.wait = 4 * patience});
  });
}

TEST_F(curator, a_leader_is_the_leader_of_the_latch) {
  // Broken: one leader in Java and one in C++.
  count_together("latch", 100, 50, [](const client& from) {
    return election(from, "stock", "cpp").campaign({.wait = 4 * patience});
  });
}

TEST_F(curator, a_java_waiter_is_seen_and_served_when_we_give_back) {
  // Broken: Curator is not woken by our release, or `show` does not show it.
  const client mine = open();
  auto held = mutex(mine, "stock").acquire({.wait = 4 * patience});
  ASSERT_TRUE(held);
  child_process other = peer("mutex", 1);
  ASSERT_TRUE(eventually(
      [&] {
        const auto state = mine.inspect("stock");
        return (state && state->waiters.size() == 1) || !other.alive();
      },
      patience * 4))
      << log();
  EXPECT_TRUE(eventually([&] { return held->wanted().stop_requested(); }));
  EXPECT_EQ(read(), 0);
  ASSERT_TRUE(held->release());
  EXPECT_EQ(other.wait(), 0) << log();
  EXPECT_EQ(read(), 1);
}

TEST_F(curator, we_wait_for_a_java_holder_and_are_served_when_it_gives_back) {
  // Broken: its node is not taken for a hold, or its end does not wake us.
  const client mine = open();
  child_process other = peer("mutex", 1, 5000);
  ASSERT_TRUE(eventually(
      [&] {
        const auto state = mine.inspect("stock");
        return (state && state->holders.size() == 1) || !other.alive();
      },
      patience * 4))
      << log();
  EXPECT_EQ(mutex(mine, "stock").acquire({.wait = 0s}).error(), errc::busy);
  const auto held = mutex(mine, "stock").acquire({.wait = 4 * patience});
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(read(), 1);
  EXPECT_EQ(other.wait(), 0) << log();
}

}  // namespace
}  // namespace holdfast::test
#endif
