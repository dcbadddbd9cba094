// Connecting to one of several addresses: those that refuse or stay silent do not delay those
// that answer.
#ifdef HOLDFAST_WITH_NET

#include "net/connector.hpp"
#include "support/eventually.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

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
using net::dialer;
using runtime::descriptor;

// A socket that listens on a loopback port of its own, or only reserves the port.
class port_holder {
 public:
  explicit port_holder(bool listening) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    if (listening && ::listen(socket_.get(), 0) != 0) ADD_FAILURE() << "listen";
  }
  [[nodiscard]] address where() const { return *address::numeric("127.0.0.1", port_); }

  // Nobody accepts: once the queue is full further connections hang, as behind a firewall.
  void fill() {
    for (int i = 0; i < 8; ++i) {
      auto begun = net::begin_connect(where());
      if (begun) waiting_.push_back(std::move(begun->socket));
    }
  }

 private:
  descriptor socket_;
  std::uint16_t port_ = 0;
  std::vector<descriptor> waiting_;
};

struct net_dialer : testing::Test {
  std::shared_ptr<spi::reactor> reactor = spi::make_reactor();
  const port_holder refusing{false};

  std::future<result<descriptor>> dial(addresses to, duration limit) {
    auto answer = std::make_shared<std::promise<result<descriptor>>>();
    auto future = answer->get_future();
    dialer::start(reactor, std::move(to), clock::now() + limit,
                  [answer](result<descriptor> made) { answer->set_value(std::move(made)); });
    return future;
  }
  static std::string peer(const result<descriptor>& made) {
    if (!made) return made.error().message();
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    ::getpeername(made->get(), reinterpret_cast<sockaddr*>(&name), &size);
    return address(reinterpret_cast<sockaddr*>(&name), size).text();
  }
};

TEST_F(net_dialer, one_that_refuses_is_followed_by_the_next) {
  // Broken: a host with an outdated address among its addresses could not be reached.
  const port_holder answering(true);
  auto made = dial({refusing.where(), refusing.where(), answering.where()}, 1h);
  ASSERT_TRUE(arrives(made));
  EXPECT_EQ(peer(made.get()), answering.where().text());
}

TEST_F(net_dialer, one_that_is_silent_gives_only_a_head_start) {
  // Broken: a black hole at the first address would cost the whole deadline.
  port_holder silent(true);
  silent.fill();
  const port_holder answering(true);
  auto made = dial({silent.where(), answering.where()}, 1h);
  ASSERT_TRUE(arrives(made));
  EXPECT_EQ(peer(made.get()), answering.where().text());
}

TEST_F(net_dialer, a_refusal_by_all_is_reported_with_the_reason) {
  // Broken: the user would not learn what is wrong.
  auto made = dial({refusing.where(), refusing.where()}, 1h);
  ASSERT_TRUE(arrives(made));
  const auto outcome = made.get();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error(), errc::unavailable);
  EXPECT_THAT(outcome.error().detail, testing::HasSubstr("Connection refused"));
}

TEST_F(net_dialer, silence_ends_at_the_deadline) {
  // Broken: a connection behind a firewall would be waited for for minutes.
  port_holder silent(true);
  silent.fill();
  auto made = dial({silent.where()}, 100ms);
  ASSERT_TRUE(arrives(made));
  const auto outcome = made.get();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().detail, testing::HasSubstr("in time"));
}

TEST_F(net_dialer, one_that_is_cancelled_calls_nobody) {
  // Broken: a closed client would be called back.
  port_holder silent(true);
  silent.fill();
  std::atomic<int> calls{0};
  const auto made = dialer::start(reactor, {silent.where()}, clock::now() + 100ms,
                                  [&](const result<descriptor>&) { ++calls; });
  made->cancel();
  std::atomic<bool> later{false};
  reactor->at(clock::now() + 200ms, [&] { later = true; });
  ASSERT_TRUE(eventually([&] { return later.load(); }));
  EXPECT_EQ(calls, 0);
}

TEST_F(net_dialer, nothing_to_dial_is_an_answer_too) {
  // Broken: a name without addresses would be waited for forever.
  auto made = dial({}, 1h);
  ASSERT_TRUE(arrives(made));
  EXPECT_FALSE(made.get());
}

TEST(net_addresses, families_take_turns) {
  // Broken: if one address family is broken, all its addresses would be tried before the other's.
  const auto of = [](const char* text) { return *address::numeric(text, 1); };
  addresses mixed{of("::1"), of("::2"), of("::3"), of("127.0.0.1"), of("127.0.0.2")};
  std::string order;
  for (const address& one : net::interleaved(mixed)) order += one.family() == AF_INET6 ? '6' : '4';
  EXPECT_EQ(order, "64646");
}

TEST(net_addresses, names_are_not_addresses) {
  // Broken: a name would be refused, or an address be looked up.
  EXPECT_FALSE(address::numeric("localhost", 1));
  EXPECT_FALSE(address::numeric("", 1));
  EXPECT_EQ(address::numeric("fe80::1", 7)->text(), "[fe80::1]:7");
  EXPECT_FALSE(address::unix_socket(std::string(200, 'x')));
  EXPECT_EQ(address::unix_socket("/run/x.sock")->text(), "unix:/run/x.sock");
}

}  // namespace
}  // namespace holdfast::test

#endif
