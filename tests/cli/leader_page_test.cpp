// elect --listen, as a load balancer asks it: with curl.
#include "cli/fixture.hpp"
#include "runtime/descriptor.hpp"
#include "support/fault_proxy.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"
#include "support/rounds.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::cli_test {
namespace {

class leader_page : public command_line {
 protected:
  // The status and the body; "000" where nobody listens.
  answer ask(std::uint16_t port, const std::string& path, const words& more = {}) {
    words line{"curl", "-s", "--max-time", "60", "-w", "\n%{http_code}"};
    line.insert(line.end(), more.begin(), more.end());
    line.push_back("http://127.0.0.1:" + std::to_string(port) + path);
    return shell_.run(line);
  }
  std::string status(std::uint16_t port, const std::string& path = "/leader",
                     const words& more = {}) {
    const std::string out = ask(port, path, more).out;
    return out.substr(out.rfind('\n') + 1);
  }
  static words campaign(std::uint16_t port, const std::string& id, const words& more = {},
                        const std::string& work = "echo leads; exec sleep 1000") {
    words line{"elect", "--listen", "127.0.0.1:" + std::to_string(port), "--id", id};
    line.insert(line.end(), more.begin(), more.end());
    line.insert(line.end(), {"scheduler", "--", "sh", "-c", work});
    return line;
  }
};

#ifdef HOLDFAST_WITH_HTTP

// A connection that asks nothing.
runtime::descriptor connected(std::uint16_t port) {
  runtime::descriptor made =
      runtime::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    throw std::system_error(errno, std::system_category(), "connect");
  }
  return made;
}

TEST_F(leader_page, says_200_with_the_term_while_it_leads_and_503_while_it_waits) {
  // Broken: a load balancer sends requests to a candidate.
  const std::uint16_t one = test::free_port();
  const std::uint16_t two = test::free_port();
  process leader = begin(campaign(one, "host-1"));
  ASSERT_TRUE(leader.says("leads"));
  process candidate = begin(campaign(two, "host-2"));
  ASSERT_TRUE(waiters("scheduler", 1));
  const std::string out = ask(one, "/leader").out;
  EXPECT_NE(out.find("{\"leader\":true,\"name\":\"scheduler\",\"id\":\"host-1\",\"term\":"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("\"fence\":"), std::string::npos) << out;
  EXPECT_EQ(status(one), "200");
  EXPECT_TRUE(eventually([&] { return status(two) == "503"; }));
  EXPECT_EQ(ask(two, "/leader").out,
            "{\"leader\":false,\"name\":\"scheduler\",\"id\":\"host-2\"}\n\n503");
  EXPECT_EQ(status(one, "/healthz"), "200");
  EXPECT_EQ(status(two, "/healthz"), "200");
  leader.send(SIGTERM);
  leader.end();
  ASSERT_TRUE(candidate.says("leads"));
  EXPECT_EQ(status(two), "200");
}

TEST_F(leader_page, survives_a_thread_that_cannot_be_made) {
  // Broken: a request on a machine that has no room for another thread ends the leader.
  const std::uint16_t port = test::free_port();
  process leader = begin(campaign(port, "host-1"));
  ASSERT_TRUE(leader.says("leads"));
  std::ifstream sizes("/proc/" + std::to_string(leader.pid()) + "/statm");
  rlim_t pages = 0;
  ASSERT_TRUE(sizes >> pages);
  rlimit before{};
  ASSERT_EQ(::prlimit(leader.pid(), RLIMIT_AS, nullptr, &before), 0);
  // Less than the stack of a thread is left.
  const rlimit tight{pages * static_cast<rlim_t>(::getpagesize()) + (1U << 20U), before.rlim_max};
  ASSERT_EQ(::prlimit(leader.pid(), RLIMIT_AS, &tight, nullptr), 0);
  {
    // Each keeps a thread busy. Stacks of threads that have ended are used first.
    std::vector<runtime::descriptor> busy;
    for (int i = 0; i < 6; ++i) busy.push_back(connected(port));
    EXPECT_NE(status(port), "200");
  }
  ASSERT_EQ(::prlimit(leader.pid(), RLIMIT_AS, &before, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return status(port) == "200"; }));
}

TEST_F(leader_page, answers_nothing_else) {
  // Broken: a request to a port that others can reach changes something.
  const std::uint16_t port = test::free_port();
  process leader = begin(campaign(port, "host-1"));
  ASSERT_TRUE(leader.says("leads"));
  EXPECT_EQ(status(port, "/"), "404");
  EXPECT_EQ(status(port, "/leader/"), "404");
  EXPECT_EQ(status(port, "/leader?x=1"), "200");
  EXPECT_EQ(status(port, "/leader", {"-X", "POST"}), "405");
  EXPECT_EQ(status(port, "/leader", {"-I"}), "200");
  EXPECT_TRUE(leader.running());
}

TEST_F(leader_page, a_bad_address_is_reported_before_anything_is_claimed) {
  // Broken: a leader that nobody finds.
  for (const char* address :
       {"4040", ":4040", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "::1:4040", "[::1", ""}) {
    EXPECT_EQ(type({"elect", "--listen", address, "x", "--", "true"}).code, 2) << address;
  }
  const std::uint16_t port = test::free_port();
  process leader = begin(campaign(port, "host-1"));
  ASSERT_TRUE(leader.says("leads"));
  const answer taken =
      type({"elect", "--listen", "127.0.0.1:" + std::to_string(port), "other", "--", "true"});
  EXPECT_EQ(taken.code, 122);
  EXPECT_NE(taken.err.find("cannot listen on 127.0.0.1:"), std::string::npos) << taken.err;
}

#ifdef HOLDFAST_WITH_REDIS

// Two instances, each with its own connection to the engine.
class cut_leader : public leader_page {
 protected:
  struct instance {
    std::uint16_t port = test::free_port();
    std::unique_ptr<test::fault_proxy> way;
    std::unique_ptr<process> program;
  };

  void start(instance& which, const std::string& id) {
    which.way = std::make_unique<test::fault_proxy>(server_.port());
    words line{"--url", "redis://127.0.0.1:" + std::to_string(which.way->port())};
    const words rest =
        campaign(which.port, id,
                 {"--ttl", std::to_string(ttl_.count()) + "ms", "--grace",
                  std::to_string(grace().count()) + "ms"},
                 // A service that needs time to stop. With one that stops immediately the
                 // program ends immediately, and its port is closed before anybody can receive a
                 // 503.
                 "trap '' TERM; exec sleep 1000");
    line.insert(line.end(), rest.begin(), rest.end());
    which.program = std::make_unique<process>(begin(line));
  }

  [[nodiscard]] std::chrono::milliseconds grace() const { return ttl_ / 5; }

  using clock = std::chrono::steady_clock;
  // Many rounds for a figure, on an idle machine; few, with time to spare, otherwise.
  const int rounds_ = test::rounds(3, 50);
  const std::chrono::milliseconds ttl_{test::rounds(10'000, 2'000)};
  test::redis_server server_;
};

TEST_F(cut_leader, says_no_before_another_says_yes) {
  // Broken: two instances accept requests at once. One request at a time, so that their order is
  // certain.
  int said_no = 0;  // by a 503; a program that has ended refuses, too
  instance leads;
  start(leads, "first");
  ASSERT_TRUE(eventually([&] { return status(leads.port) == "200"; }));
  for (int round = 0; round < rounds_; ++round) {
    instance next;
    start(next, "next");
    ASSERT_TRUE(eventually([&] { return status(next.port) == "503"; }));
    ASSERT_EQ(status(leads.port), "200");
    leads.way->lose(test::fault_proxy::way::to_server);
    leads.way->lose(test::fault_proxy::way::to_client);
    std::string last = "200";
    bool refused = false;
    auto asked = clock::now();
    ASSERT_TRUE(eventually([&] {
      asked = clock::now();
      last = status(leads.port);
      refused = refused || last == "503";
      return status(next.port) == "200";
    }));
    said_no += refused ? 1 : 0;
    // A client that asks slowly may miss the 503 in between; but a 200 is valid for at least the
    // grace period.
    ASSERT_TRUE(last != "200" || clock::now() - asked >= grace()) << "round " << round;
    ASSERT_NE(status(leads.port), "200") << "round " << round;
    EXPECT_EQ(leads.program->end().code, 123);
    leads.program.reset();
    leads = std::move(next);
  }
  std::printf("%d of %d answered 503 before the next answered 200\n", said_no, rounds_);
}

#endif
#else

TEST_F(leader_page, is_refused_clearly_where_it_was_left_out) {
  // Broken: a load balancer asks a port on which nobody listens.
  const answer refused = type(campaign(test::free_port(), "host-1"));
  EXPECT_EQ(refused.code, 122);
  EXPECT_NE(refused.err.find("this build has no HTTP"), std::string::npos) << refused.err;
}

#endif

}  // namespace
}  // namespace holdfast::cli_test
