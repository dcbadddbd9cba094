// Resolving names: no caller waits longer than its deadline, whatever the system's resolver does.
#ifdef HOLDFAST_WITH_NET

#include "net/resolver.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using net::address;
using net::addresses;
using net::resolver;

// A name server that answers when it is allowed to, each host with its own address.
struct slow_names {
  std::atomic<bool> open{false};
  std::atomic<bool> failing{false};
  std::atomic<int> asked{0};
  std::atomic<int> inside{0};
  std::atomic<int> most_inside{0};

  result<addresses> answer(const std::string&) {
    ++asked;
    const int now = ++inside;
    int most = most_inside;
    while (now > most && !most_inside.compare_exchange_weak(most, now)) {
    }
    eventually([this] { return open.load(); });
    --inside;
    if (failing) return failure(errc::unavailable, "no such name");
    return addresses{*address::numeric("127.0.0.9", 0)};
  }
};

struct net_resolver : testing::Test {
  std::shared_ptr<slow_names> names = std::make_shared<slow_names>();
  std::shared_ptr<spi::reactor> reactor = spi::make_reactor();
  std::unique_ptr<resolver> resolve = std::make_unique<resolver>(
      reactor, [kept = names](const std::string& host) { return kept->answer(host); });

  std::future<result<addresses>> ask(const std::string& host, duration limit) {
    auto answer = std::make_shared<std::promise<result<addresses>>>();
    auto future = answer->get_future();
    resolve->resolve(host, 6379, clock::now() + limit,
                     [answer](result<addresses> found) { answer->set_value(std::move(found)); });
    return future;
  }
  static std::string first(const result<addresses>& found) {
    return found ? found->front().text() : found.error().message();
  }
  ~net_resolver() override { names->open = true; }
};

TEST_F(net_resolver, numeric_hosts_are_answered_before_the_call_returns) {
  // Broken: an address would wait behind a dead name server.
  for (const auto& [host, text] : std::vector<std::pair<std::string, std::string>>{
           {"127.0.0.1", "127.0.0.1:6379"}, {"::1", "[::1]:6379"}, {"10.1.2.3", "10.1.2.3:6379"}}) {
    auto answer = ask(host, 1h);
    ASSERT_EQ(answer.wait_for(0s), std::future_status::ready);
    EXPECT_EQ(first(answer.get()), text);
  }
  EXPECT_EQ(names->asked, 0);
}

TEST_F(net_resolver, a_slow_name_server_is_not_waited_for_beyond_the_deadline) {
  // Broken (H29): a dead name server would hold a caller for tens of seconds.
  auto answer = ask("slow", 50ms);
  ASSERT_TRUE(arrives(answer));
  const auto found = answer.get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), errc::unavailable);
  EXPECT_THAT(found.error().detail, testing::HasSubstr("'slow'"));
}

TEST_F(net_resolver, many_requests_for_a_host_are_one_look_up) {
  // Broken: an outage of names would multiply itself.
  std::vector<std::future<result<addresses>>> answers;
  for (int i = 0; i < 50; ++i) answers.push_back(ask("one", 1h));
  ASSERT_TRUE(eventually([&] { return names->asked == 1; }));
  names->open = true;
  for (auto& one : answers) {
    ASSERT_TRUE(arrives(one));
    EXPECT_EQ(first(one.get()), "127.0.0.9:6379");
  }
  EXPECT_EQ(names->asked, 1);
}

TEST_F(net_resolver, the_last_good_addresses_are_used_while_a_name_server_is_down) {
  // Broken: locks would be lost because a name server is down while the lock server is not.
  names->open = true;
  auto good = ask("host", 1h);
  ASSERT_TRUE(arrives(good));
  names->open = false;
  auto slow = ask("host", 1h);
  ASSERT_TRUE(arrives(slow)) << "within its patience, not at the deadline";
  EXPECT_EQ(first(slow.get()), "127.0.0.9:6379");
  names->failing = true;
  names->open = true;
  auto failed = ask("host", 1h);
  ASSERT_TRUE(arrives(failed));
  EXPECT_EQ(first(failed.get()), "127.0.0.9:6379");
}

TEST_F(net_resolver, a_failure_is_reported_in_the_resolvers_words) {
  // Broken: a mistyped host would look like an outage.
  names->failing = true;
  names->open = true;
  auto answer = ask("typo", 1h);
  ASSERT_TRUE(arrives(answer));
  EXPECT_THAT(first(answer.get()), testing::HasSubstr("no such name"));
}

TEST_F(net_resolver, threads_and_questions_are_limited) {
  // Broken: a flood of names would be a flood of threads.
  std::vector<std::future<result<addresses>>> answers;
  for (int i = 0; i < 100; ++i) answers.push_back(ask("host" + std::to_string(i), 1h));
  ASSERT_TRUE(eventually([&] { return names->inside == int{resolver::worker_limit}; }));
  std::size_t refused = 0;
  for (auto& one : answers) refused += one.wait_for(0s) == std::future_status::ready ? 1U : 0U;
  EXPECT_GE(refused, 100 - resolver::queue_limit - resolver::worker_limit);
  names->open = true;
  for (auto& one : answers) ASSERT_TRUE(arrives(one));
  EXPECT_EQ(names->most_inside, int{resolver::worker_limit});
}

TEST_F(net_resolver, it_may_end_while_a_name_is_asked_for) {
  // Broken: closing a client would wait for a dead name server, or crash when that answers.
  auto answer = ask("slow", 1h);
  ASSERT_TRUE(eventually([&] { return names->inside == 1; }));
  const time_point start = clock::now();
  resolve.reset();
  reactor.reset();
  EXPECT_LT(clock::now() - start, 20s);
  names->open = true;
  EXPECT_TRUE(eventually([&] { return names->inside == 0; }));
}

TEST(net_look_up, the_system_knows_localhost) {
  // Broken: no name at all could be resolved.
  const auto found = net::look_up("localhost");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_FALSE(found->empty());
}

}  // namespace
}  // namespace holdfast::test

#endif
