// An engine that was never there: a port that refuses, one that says nothing, a name that does not
// resolve. On every engine with a server a try is answered at once, and nobody waits without a
// limit or without being told the cause.
#include "support/recording_observer.hpp"

#include <holdfast/holdfast.hpp>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// libmariadb has only the number of the cause, and loses that at times.
auto is_refusal() { return testing::AnyOf(HasSubstr("refused"), HasSubstr("Can't connect to")); }

// Well below what these took, and enough for a busy machine.
constexpr duration answered_within = 4s;

// Reserved as long as it lives.
class own_port {
 public:
  [[nodiscard]] std::string text() const { return "127.0.0.1:" + std::to_string(port_); }

 protected:
  explicit own_port(bool listens) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    auto* address = reinterpret_cast<sockaddr*>(&here);
    if (::bind(socket_, address, size) != 0 || (listens && ::listen(socket_, 100) != 0) ||
        ::getsockname(socket_, address, &size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(here.sin_port);
  }
  own_port(const own_port&) = delete;
  own_port& operator=(const own_port&) = delete;
  ~own_port() { ::close(socket_); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

// Takes connections, and says nothing.
struct silent_port : own_port {
  silent_port() : own_port(true) {}
};

struct refusing_port : own_port {
  refusing_port() : own_port(false) {}
};

struct dead_case {
  std::string name;
  std::string url;  // HOST, and H1,H2,H3 for a quorum
};

void PrintTo(const dead_case& each, std::ostream* out) { *out << each.name; }

std::vector<dead_case> engines() {
  std::vector<dead_case> all;
#ifdef HOLDFAST_WITH_REDIS
  all.push_back({"redis", "redis://HOST?"});
  all.push_back({"redis_simple", "redis://HOST?dialect=simple"});
  all.push_back({"sentinel", "redis+sentinel://HOST/master?"});
  all.push_back({"cluster", "redis+cluster://HOST?"});
  all.push_back({"redlock", "redlock://HOST,localhost:1,localhost:2?"});
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
  all.push_back({"zookeeper", "zookeeper://HOST?"});
#endif
#ifdef HOLDFAST_WITH_ETCD
  all.push_back({"etcd", "etcd://HOST?"});
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
  for (const char* how : {"lease", "session", "row"}) {
    all.push_back({std::string("postgresql_") + how,
                   std::string("postgresql://u:p@HOST/db?strategy=") + how});
  }
#endif
#ifdef HOLDFAST_WITH_MARIADB
  for (const char* how : {"lease", "session", "row"}) {
    all.push_back(
        {std::string("mariadb_") + how, std::string("mariadb://u:p@HOST/db?strategy=") + how});
  }
#endif
  return all;
}

class dead_engine : public ::testing::TestWithParam<dead_case> {
 protected:
  static client open(const std::string& host, const std::string& option = {},
                     client_options options = {}) {
    std::string url = GetParam().url;
    url.replace(url.find("HOST"), 4, host);
    if (!option.empty()) url += (url.ends_with('?') ? "" : "&") + option;
    if (url.ends_with('?')) url.pop_back();
    auto made = client::open(url, std::move(options));
    if (!made) throw std::runtime_error(made.error().message());
    return *made;
  }
  [[nodiscard]] std::string refusing() const { return refuses_.text(); }

  // Expects this cause, and soon.
  template <class Call>
  static error refused(Call call) {
    const time_point begun = clock::now();
    const auto answer = call();
    EXPECT_LT(clock::now() - begun, answered_within);
    EXPECT_FALSE(answer);
    return answer ? error{} : answer.error();
  }

 private:
  const refusing_port refuses_;
};

TEST_P(dead_engine, a_try_at_a_port_that_refuses_is_answered_at_once) {
  // Broken: it took five seconds, whatever the wait.
  const client a = open(refusing());
  mutex stock(a, "stock");
  for (int again = 0; again < 3; ++again) {
    const error why = refused([&] { return stock.acquire({.wait = 0s}); });
    EXPECT_EQ(why.code, errc::unavailable) << why.message();
    EXPECT_THAT(why.detail, HasSubstr("acquire 'stock'"));
    EXPECT_THAT(why.detail, is_refusal());
  }
}

TEST_P(dead_engine, a_try_at_a_port_that_says_nothing_is_answered_within_the_time_to_connect) {
  // Broken: it took five seconds, whatever the URL said.
  const silent_port port;
  const client a = open(port.text());
  mutex stock(a, "stock");
  EXPECT_EQ(refused([&] { return stock.acquire({.wait = 0s}); }).code, errc::unavailable);
  const client b = open(port.text(), "connect_timeout=100ms");
  mutex other(b, "stock");
  EXPECT_EQ(refused([&] { return other.acquire({.wait = -1s}); }).code, errc::unavailable);
}

TEST_P(dead_engine, nobody_waits_without_an_end_for_one_that_was_never_reached) {
  // Broken: lock() hung, without an event, for a misspelt name.
  const client a = open("no-such-host.invalid", "connect_timeout=300ms");
  mutex stock(a, "stock");
  const error why = refused([&] { return stock.acquire(); });
  EXPECT_EQ(why.code, errc::unavailable) << why.message();
  EXPECT_THAT(why.detail, HasSubstr("acquire 'stock'"));
  EXPECT_THROW(stock.lock(), lock_error);
}

TEST_P(dead_engine, nobody_waits_on_because_two_times_to_answer_were_the_same) {
  // Broken: lock() hung, without an event, where a request had as long as the connection.
  const silent_port port;
  const client a = open(port.text(), "connect_timeout=300ms");
  mutex stock(a, "stock", {.ttl = 900ms});
  const error why = refused([&] { return stock.acquire({.wait = 1min}); });
  EXPECT_EQ(why.code, errc::unavailable) << why.message();
}

TEST_P(dead_engine, nobody_waits_on_because_another_has_more_time_to_answer) {
  // Broken: the same for who waits for a request that is shared and whose own time is over first.
  const silent_port port;
  const client a = open(port.text(), "connect_timeout=1s");
  mutex(a, "other", {.ttl = 2s}).async_acquire({.wait = 1min}, {}, [](const result<lease>&) {});
  mutex stock(a, "stock", {.ttl = 1200ms});
  const error why = refused([&] { return stock.acquire({.wait = 1min}); });
  EXPECT_EQ(why.code, errc::unavailable) << why.message();
}

TEST_P(dead_engine, the_cause_is_reported_when_the_wait_is_over) {
  // Broken: "unavailable (no answer yet)".
  const client a = open(refusing());
  const error why = refused([&] { return mutex(a, "stock").acquire({.wait = 200ms}); });
  EXPECT_EQ(why.code, errc::unavailable);
  EXPECT_THAT(why.detail, is_refusal());
  const silent_port port;
  const client b = open(port.text());
  const error silent = refused([&] { return mutex(b, "stock").acquire({.wait = 200ms}); });
  EXPECT_EQ(silent.code, errc::unavailable);
  EXPECT_THAT(silent.detail, HasSubstr("127.0.0.1"));
}

TEST_P(dead_engine, retry_policies_are_obeyed) {
  // Broken: never() and for_at_most() took five seconds.
  client_options never;
  never.retry = retry_policy::never();
  const client a = open(refusing(), {}, never);
  EXPECT_EQ(refused([&] { return mutex(a, "stock").acquire(); }).code, errc::unavailable);
  client_options shortly;
  shortly.retry = retry_policy::for_at_most(100ms);
  const silent_port port;
  const client b = open(port.text(), {}, shortly);
  EXPECT_EQ(refused([&] { return mutex(b, "stock").acquire(); }).code, errc::unavailable);
  EXPECT_EQ(refused([&] { return mutex(b, "stock").acquire({.wait = 0s}); }).code,
            errc::unavailable);
}

TEST_P(dead_engine, is_reported_once_with_its_cause) {
  // Broken: not one event.
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  const client a = open(refusing(), {}, options);
  mutex stock(a, "stock");
  for (int again = 0; again < 3; ++again) static_cast<void>(stock.acquire({.wait = 0s}));
  ASSERT_TRUE(seen->sees(event_kind::engine_unreachable));
  ASSERT_TRUE(seen->sees(event_kind::failed, 3));
  const auto told = seen->all(event_kind::engine_unreachable);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told.front().cause, is_refusal());
}

TEST_P(dead_engine, does_not_answer_a_ping) {
  // Broken: a service starts, and fails at its first lock.
  const client a = open(refusing());
  const error why = refused([&] { return a.ping(1min); });
  EXPECT_THAT(why.detail, is_refusal());
}

TEST_P(dead_engine, keeps_no_client_that_closes) {
  // Broken: a try that was never sent was withdrawn for two seconds.
  client a = open(refusing());
  static_cast<void>(mutex(a, "stock").acquire({.wait = 0s}));
  EXPECT_TRUE(a.close().empty());  // there is nothing to give back
}

INSTANTIATE_TEST_SUITE_P(engines, dead_engine, ::testing::ValuesIn(engines()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace holdfast::test
