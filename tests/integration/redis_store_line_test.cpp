// The Redis store's line: how many scripts a hand-over costs.
#include "integration/redis_store_harness.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace holdfast::test {
namespace {

TEST(redis_store_line, a_hundred_waiters_are_served_by_one_script_each) {
  // Broken: a release would wake a herd that all ask again, as publish-and-retry does.
  const redis_server server;
  constexpr int clients = 4;
  constexpr int each_has = 25;
  std::vector<client> all;
  std::vector<std::unique_ptr<mutex>> locks;
  for (int i = 0; i < clients; ++i) all.push_back(open_client(redis_url(server.port())));
  mutex first(all[0], "stock", {.ttl = 60s, .fair = true});
  auto held = first.acquire();
  ASSERT_TRUE(held);
  std::atomic<int> granted{0};
  for (const client& mine : all) {
    for (int i = 0; i < each_has; ++i) {
      locks.push_back(
          std::make_unique<mutex>(mine, "stock", lock_options{.ttl = 60s, .fair = true}));
      locks.back()->async_acquire({.wait = 60s}, {}, [&granted](result<lease> answer) {
        if (answer) ++granted;  // and given back at once
      });
    }
  }
  ASSERT_TRUE(eventually([&] { return line_length(all[0], "stock") == clients * each_has; }));
  const auto scripts = [&] {
    const std::string text = server.cli({"INFO", "commandstats"});
    long sum = 0;
    for (const std::string name : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
      const auto at = text.find(name);
      if (at != std::string::npos) sum += std::stol(text.substr(at + name.size()));
    }
    return sum;
  };
  const long before = scripts();
  const time_point start = clock::now();
  EXPECT_EQ(told(held->release()), "ok");
  ASSERT_TRUE(eventually([&] { return granted.load() == clients * each_has; }));
  // Beside a release each, every client looks once a second, in a batch, whether a push was lost.
  const auto seconds = (clock::now() - start) / 1s + 1;
  EXPECT_LE(scripts() - before, clients * each_has + 1 + 3 * clients * seconds);
}

}  // namespace
}  // namespace holdfast::test
