// TLS: the server proves its identity, by chain and name, or nothing is sent to it.
#ifdef HOLDFAST_WITH_REDIS

#include "net/tls_context.hpp"
#include "redis_client_harness.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"
#include "support/tls_files.hpp"

#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using net::tls_context;
using net::tls_options;
using testing::HasSubstr;

constexpr const char* usual_names = "DNS:localhost,IP:127.0.0.1";

redis_options serving(const tls_files::pair& with, const tls_files& files,
                      const std::string& clients = "no") {
  return {.tls = true,
          .arguments = {"--tls-cert-file", with.cert, "--tls-key-file", with.key,
                        "--tls-ca-cert-file", files.authority(), "--tls-auth-clients", clients},
          .admin = {}};
}

struct redis_tls : testing::Test {
  tls_files files;
  client_side client;

  std::shared_ptr<connection> connect(std::uint16_t port, const tls_options& how,
                                      const std::string& host = "localhost") {
    auto options = options_for(port);
    options.where.host = host;
    auto made = tls_context::make(how);
    EXPECT_TRUE(made) << made.error().message();
    options.tls = *made;
    return client.connect(std::move(options));
  }
  tls_options trusting() const {
    tls_options how;
    how.ca = files.authority();
    return how;
  }
};

TEST_F(redis_tls, a_server_with_the_right_certificate_is_talked_to) {
  // Broken: rediss:// would not work.
  const redis_server server(serving(files.signed_for(usual_names), files));
  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto line = connect(server.port(), trusting(), host);
    EXPECT_EQ(words(client.call(line, {"PING"})), "PONG") << host;
  }
}

TEST_F(redis_tls, a_plain_client_at_a_tls_port_gets_a_clear_error) {
  // Broken: "not connected in time", after five seconds.
  const redis_server server(serving(files.signed_for(usual_names), files));
  const auto answer = client.call(client.connect(server.port()), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);
  EXPECT_THAT(answer.error().detail, HasSubstr("the server speaks TLS: use rediss://"));
}

TEST_F(redis_tls, a_tls_client_at_a_plain_port_gets_a_clear_error) {
  // Broken: "wrong version number".
  const redis_server server;
  const auto answer = client.call(connect(server.port(), trusting()), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);
  EXPECT_THAT(answer.error().detail, HasSubstr("does not speak TLS: use redis://"));
}

TEST_F(redis_tls, sixteen_threads_and_large_answers_go_through_one_session) {
  // Broken: records would leave in another order than they were made, and the session would break.
  const redis_server server(serving(files.signed_for(usual_names), files));
  const auto line = connect(server.port(), trusting());
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> all;
    for (int thread = 0; thread < 16; ++thread) {
      all.emplace_back([&, thread] {
        const std::string text(static_cast<std::size_t>(thread) * 5'000 + 1,
                               static_cast<char>('a' + thread));
        for (int round = 0; round < 50; ++round) {
          if (words(client.call(line, {"ECHO", text})) != text) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  const std::string large(20'000'000, 'x');
  EXPECT_TRUE(words(client.call(line, {"ECHO", large})) == large);
}

TEST_F(redis_tls, a_certificate_for_another_name_is_refused) {
  // Broken: anybody with any certificate of the same authority could impersonate the server.
  const redis_server server(serving(files.signed_for("DNS:elsewhere"), files));
  const auto answer = client.call(connect(server.port(), trusting()), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);
  EXPECT_THAT(answer.error().detail, HasSubstr("hostname mismatch"));
  const auto by_address = client.call(connect(server.port(), trusting(), "127.0.0.1"), {"PING"});
  ASSERT_EQ(code(by_address), errc::denied);
  EXPECT_THAT(by_address.error().detail, HasSubstr("IP address mismatch"));
}

TEST_F(redis_tls, sni_says_which_name_is_looked_for) {
  // Broken: a server behind an address or a tunnel could not be verified at all.
  const redis_server server(serving(files.signed_for("DNS:elsewhere"), files));
  tls_options how = trusting();
  how.sni = "elsewhere";
  EXPECT_EQ(words(client.call(connect(server.port(), how), {"PING"})), "PONG");
}

TEST_F(redis_tls, an_expired_certificate_is_refused) {
  // Broken: a key that leaked long ago would still be trusted.
  const redis_server server(serving(files.expired_for(usual_names), files));
  const auto answer = client.call(connect(server.port(), trusting()), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);
  EXPECT_THAT(answer.error().detail, HasSubstr("expired"));
}

TEST_F(redis_tls, a_self_signed_certificate_is_refused_unless_it_is_the_one_trusted) {
  // Broken: verification would be for show.
  const auto itself = files.self_signed_for(usual_names);
  const redis_server server(serving(itself, files));
  const auto answer = client.call(connect(server.port(), trusting()), {"PING"});
  ASSERT_EQ(code(answer), errc::denied);
  EXPECT_THAT(answer.error().detail, HasSubstr("self-signed"));

  const auto by_system = client.call(connect(server.port(), {}), {"PING"});
  EXPECT_EQ(code(by_system), errc::denied) << "the system's authorities know nothing of it";

  tls_options how;
  how.ca = itself.cert;
  EXPECT_EQ(words(client.call(connect(server.port(), how), {"PING"})), "PONG");
}

TEST_F(redis_tls, nothing_is_verified_only_where_that_is_spelled_out) {
  // Broken: verify=none would not do what it says.
  const redis_server server(serving(files.self_signed_for("DNS:elsewhere"), files));
  tls_options how;
  how.verify = tls_options::verification::none;
  EXPECT_EQ(words(client.call(connect(server.port(), how), {"PING"})), "PONG");
}

TEST_F(redis_tls, a_server_that_wants_our_certificate_gets_it_or_refuses_us_by_name) {
  // Broken: mutual TLS would fail, or fail without saying what is missing.
  const redis_server server(serving(files.signed_for(usual_names), files, "yes"));
  const auto refused = client.call(connect(server.port(), trusting()), {"PING"});
  ASSERT_EQ(code(refused), errc::denied);
  EXPECT_THAT(refused.error().detail, HasSubstr("cert="));

  tls_options how = trusting();
  const auto mine = files.signed_for("DNS:client");
  how.cert = mine.cert;
  how.key = mine.key;
  EXPECT_EQ(words(client.call(connect(server.port(), how), {"PING"})), "PONG");
}

TEST_F(redis_tls, a_handshake_that_hangs_ends_at_the_deadline) {
  // Broken: a half-open server would hold the caller in the middle of the handshake.
  const redis_server server(serving(files.signed_for(usual_names), files));
  fault_proxy proxy(server.port());
  const auto line = connect(proxy.port(), trusting());
  for (const auto which : {fault_proxy::way::to_client, fault_proxy::way::to_server}) {
    proxy.lose(which);
    EXPECT_EQ(code(client.call(line, {"PING"}, 200ms)), errc::unavailable);
    proxy.pass();
    proxy.reset();
    EXPECT_EQ(words(client.call(line, {"PING"})), "PONG");
    proxy.reset();
  }
}

TEST_F(redis_tls, a_session_broken_at_any_byte_is_unavailable_and_then_made_again) {
  // Broken: a torn record would crash, hang, or be accepted.
  const redis_server server(serving(files.signed_for(usual_names), files));
  fault_proxy proxy(server.port());
  auto options = options_for(proxy.port());
  options.backoff = {1ms, 10ms};
  options.tls = *tls_context::make(trusting());
  const auto line = client.connect(std::move(options));
  for (std::size_t cut = 0; cut < 3'000; cut += 37) {
    proxy.cut_after(fault_proxy::way::to_client, cut);
    proxy.reset();
    (void)client.call(line, {"PING"}, 2s);
    proxy.pass();
    ASSERT_EQ(words(client.call(line, {"ECHO", "well"})), "well") << cut;
  }
}

TEST(redis_tls_files, files_that_cannot_be_used_are_named) {
  // Broken: a wrong path would be found out at the first connection, or not at all.
  tls_files files;
  const auto first = files.signed_for(usual_names);
  const auto second = files.signed_for(usual_names);
  for (const auto& [how, option] : std::vector<std::pair<tls_options, std::string>>{
           {{.ca = "/nowhere/ca.crt", .cert = "", .key = "", .sni = ""}, "ca=/nowhere/ca.crt"},
           {{.ca = first.key, .cert = "", .key = "", .sni = ""}, "ca="},
           {{.ca = "", .cert = "/nowhere/c", .key = "", .sni = ""}, "cert=/nowhere/c"},
           {{.ca = "", .cert = first.cert, .key = "/nowhere/k", .sni = ""}, "key=/nowhere/k"},
           {{.ca = "", .cert = first.cert, .key = second.key, .sni = ""}, "key="},
           {{.ca = "", .cert = "", .key = first.key, .sni = ""}, "cert="}}) {
    const auto made = tls_context::make(how);
    ASSERT_FALSE(made) << option;
    EXPECT_EQ(made.error().code, errc::invalid);
    EXPECT_THAT(made.error().detail, HasSubstr(option));
  }
}

}  // namespace
}  // namespace holdfast::test

#endif
