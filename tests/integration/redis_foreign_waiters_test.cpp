// Both foreign dialects: waiters of other libraries, which nobody can see, get in beside busy threads of ours.
#include "integration/redis_store_harness.hpp"

#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

// Eight threads of one client pass the lock on among themselves until the test ends.
class busy_client {
 public:
  busy_client(const std::string& url, const std::string& name) : client_(open_client(url)) {
    for (int i = 0; i < 8; ++i) {
      threads_.emplace_back([this, name](const std::stop_token& stop) {
        mutex lock(client_, name, {.ttl = 20s});
        while (!stop.stop_requested()) {
          const auto lease = lock.acquire({.wait = patience});
          if (!lease) continue;
          ++grants_;
          std::this_thread::sleep_for(10ms);  // the work under the lock
        }
      });
    }
  }
  ~busy_client() {
    for (auto& each : threads_) each.request_stop();
  }
  busy_client(const busy_client&) = delete;
  busy_client& operator=(const busy_client&) = delete;

  [[nodiscard]] int grants() const { return grants_; }

 private:
  client client_;
  std::atomic<int> grants_{0};
  std::vector<std::jthread> threads_;
};

// The number of attempts until it was granted; with pauses in between, as in the other libraries.
int tries_until(const std::function<bool()>& granted, int most) {
  std::minstd_rand random(7);
  for (int tries = 1; tries <= most; ++tries) {
    if (granted()) return tries;
    std::this_thread::sleep_for(20ms + std::chrono::milliseconds(random() % 60));
  }
  return most + 1;
}

constexpr int enough = 40;

TEST(redis_foreign_waiters, set_nx_in_a_loop_gets_in_beside_eight_busy_threads) {
  // Broken: redis-py waits until they stop.
  const redis_server server;
  const busy_client busy(redis_url(server.port(), "?dialect=simple"), "stock");
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&, before = busy.grants()] { return busy.grants() > before + 3; }));
    EXPECT_LE(tries_until(
                  [&] {
                    return server.cli({"SET", "stock", "theirs", "NX", "PX", "60000"}) == "OK";
                  },
                  enough),
              enough);
    server.cli({"DEL", "stock"});
  }
}

TEST(redis_foreign_waiters, redissons_script_in_a_loop_gets_in_beside_eight_busy_threads) {
  // Broken: Redisson waits until they stop.
  const std::string take =
      "if ((redis.call('exists', KEYS[1]) == 0) or (redis.call('hexists', KEYS[1], ARGV[2]) == 1)) "
      "then "
      "redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return "
      "'mine'; end; "
      "return redis.call('pttl', KEYS[1]);";
  const redis_server server;
  const busy_client busy(redis_url(server.port(), "?dialect=redisson"), "stock");
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&, before = busy.grants()] { return busy.grants() > before + 3; }));
    EXPECT_LE(tries_until(
                  [&] {
                    return server.cli({"EVAL", take, "1", "stock", "60000", "java:1"}) == "mine";
                  },
                  enough),
              enough);
    server.cli({"DEL", "stock"});
    server.cli({"PUBLISH", "redisson_lock__channel:{stock}", "0"});
  }
}

}  // namespace
}  // namespace holdfast::test
