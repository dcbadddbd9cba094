// TLS to ZooKeeper's secureClientPort: the server proves its identity, by chain and name, or
// nothing is sent to it.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "contract/contract.hpp"
#include "support/tls_files.hpp"
#include "support/zookeeper_server.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

// The certificate that a test's server presents, and what it requires of clients.
class zookeeper_tls : public testing::Test {
 protected:
  // `clients`: none, want or need.
  void serve(const tls_files::pair& with, const std::string& clients) {
    // The server takes key and certificates in one file.
    const std::string both = folder_.path() / "server.pem";
    std::ofstream(both) << std::ifstream(with.key).rdbuf() << std::ifstream(with.cert).rdbuf();
    zookeeper_options options;
    options.tls = {"ssl.keyStore.location=" + both, "ssl.keyStore.type=PEM",
                   "ssl.trustStore.location=" + files.authority(), "ssl.trustStore.type=PEM",
                   "ssl.clientAuth=" + clients};
    server_ = start_zookeeper(options);
  }
  [[nodiscard]] zookeeper_server& server() { return *server_; }

  // Generous: the first handshake of a Java server on a busy machine takes seconds.
  [[nodiscard]] client open(const std::string& options, const std::string& host = "localhost") {
    return client::open("zookeeper://" + host + ":" + std::to_string(server_->tls_port()) +
                        "/shop?connect_timeout=60s&" + options)
        .value();
  }
  [[nodiscard]] result<lease> lock(const std::string& options,
                                   const std::string& host = "localhost") {
    return mutex(open(options, host), "stock").acquire({.wait = 60s});
  }

  tls_files files;

 private:
  temporary_folder folder_;
  std::unique_ptr<zookeeper_server> server_;
};

TEST_F(zookeeper_tls, chain_and_name_are_checked_unless_it_is_spelled_out_that_they_are_not) {
  // Broken: a man in the middle reads and writes locks (S3, S4), or tls=yes does not work.
  serve(files.signed_for("DNS:localhost"), "none");
  const std::string known = "tls=yes&ca=" + files.authority();
  EXPECT_THAT(lock(known), succeeds());
  const auto by_address = lock(known, "127.0.0.1");
  ASSERT_THAT(by_address, fails_with(errc::denied));
  EXPECT_THAT(by_address.error().detail, HasSubstr("IP address mismatch"));
  EXPECT_THAT(lock(known + "&sni=localhost", "127.0.0.1"), succeeds());
  const auto other_name = lock(known + "&sni=elsewhere");
  ASSERT_THAT(other_name, fails_with(errc::denied));
  EXPECT_THAT(other_name.error().detail, HasSubstr("hostname mismatch"));

  const tls_files strangers;
  const auto unknown = lock("tls=yes&ca=" + strangers.authority());
  ASSERT_THAT(unknown, fails_with(errc::denied));
  EXPECT_THAT(unknown.error().detail, HasSubstr("certificate"));
  EXPECT_THAT(lock("tls=yes"), fails_with(errc::denied))
      << "the system's authorities know nothing of it";
  EXPECT_THAT(lock("tls=yes&verify=none", "127.0.0.1"), succeeds());
}

TEST_F(zookeeper_tls, a_server_that_wants_our_certificate_gets_it_or_refuses_us) {
  // Broken: mutual TLS would fail, or without it the client would hang or assume that it was let
  // in.
  serve(files.signed_for("DNS:localhost"), "need");
  const std::string known = "tls=yes&ca=" + files.authority();
  const auto refused = lock(known);
  ASSERT_THAT(refused, fails_with(errc::denied))
      << (refused ? std::string("let in") : refused.error().message());
  EXPECT_THAT(refused.error().detail, HasSubstr("cert="));
  const auto mine = files.signed_for("DNS:client");
  const std::string whole = known + "&cert=" + mine.cert + "&key=" + mine.key;
  EXPECT_THAT(lock(whole), succeeds());

  const client a = open(whole);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = 60s}), succeeds()) << "connected";
  const auto checks = a.probe();
  ASSERT_THAT(checks, succeeds());
  EXPECT_TRUE(std::all_of(checks->begin(), checks->end(), [](const health_check& each) {
    return each.state != health_check::status::fail;
  }));
}

TEST_F(zookeeper_tls, plain_and_secret_ports_are_not_mixed_up_silently) {
  // Broken: a client without TLS hangs at a port with it, or one with TLS talks in plain text.
  serve(files.signed_for("DNS:localhost"), "none");
  const client plain =
      client::open("zookeeper://localhost:" + std::to_string(server().tls_port()) + "/shop")
          .value();
  EXPECT_THAT(mutex(plain, "stock", {.ttl = 3s}).acquire({.wait = 2s}),
              fails_with(errc::unavailable));
  const client secret = client::open("zookeeper://localhost:" + std::to_string(server().port()) +
                                     "/shop?tls=yes&ca=" + files.authority())
                            .value();
  const auto answer = mutex(secret, "stock", {.ttl = 3s}).acquire({.wait = 2s});
  EXPECT_FALSE(answer);
}

}  // namespace
}  // namespace holdfast::test

#endif
