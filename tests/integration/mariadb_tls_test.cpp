// TLS: the server proves its identity, by chain and name, or nothing is sent to it.
#ifdef HOLDFAST_WITH_MARIADB

#include "integration/mariadb_harness.hpp"
#include "support/tls_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

namespace holdfast::test {
namespace {

// Where only the server, which runs as another user, may read them.
class mariadb_keys {
 public:
  explicit mariadb_keys(const tls_files::pair& from) {
    for (const auto& [name, source] : {std::pair("crt", from.cert), std::pair("key", from.key)}) {
      std::filesystem::copy_file(source, folder_.path() / name);
      give_away(folder_.path() / name);
    }
    give_away(folder_.path());
  }
  [[nodiscard]] mariadb_options options() const {
    mariadb_options options;
    options.settings = {"ssl-cert=" + (folder_.path() / "crt").string(),
                        "ssl-key=" + (folder_.path() / "key").string()};
    return options;
  }

 private:
  static void give_away(const std::filesystem::path& path) {
    if (::geteuid() != 0) return;
    const passwd* user = ::getpwnam("mysql");
    if (::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("chown: " + path.string());
    }
  }

  temporary_folder folder_;
};

template <class Server>
result<lease> taken(const Server& server, const std::string& host, const std::string& options) {
  const client a = open_client("mariadb://tester@" + host + ":" + std::to_string(server.port()) +
                               "/locks?connections=1" + options);
  return mutex(a, "stock").acquire({.wait = patience});
}

TEST(mariadb_tls, chain_and_name_are_checked) {
  // Broken: a man in the middle reads and writes locks (S3, S4).
  tls_files files;
  const mariadb_keys keys(files.signed_for("DNS:localhost"));
  const mariadb_server server(keys.options());
  const std::string known = "&ssl_mode=verify_identity&ssl_ca=" + files.authority();
  EXPECT_THAT(taken(server, "localhost", known), succeeds());
  EXPECT_THAT(taken(server, "127.0.0.1", known), fails_with(errc::denied));
  tls_files strangers;
  EXPECT_THAT(
      taken(server, "localhost", "&ssl_mode=verify_identity&ssl_ca=" + strangers.authority()),
      fails_with(errc::denied));
  EXPECT_THAT(taken(server, "127.0.0.1", "&ssl_mode=required"), succeeds());
}

TEST(mariadb_tls, a_server_without_it_is_not_good_enough) {
  // Broken: requested encryption is silently left out.
  EXPECT_THAT(taken(shared_mariadb(), "127.0.0.1", "&ssl_mode=required"), fails_with(errc::denied));
}

// The number of this process's sockets to the server, and how many of them block.
std::pair<int, int> sockets_to(std::uint16_t port) {
  int all = 0;
  int blocking = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::stoi(each.path().filename());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    ++all;
    if ((::fcntl(socket, F_GETFL) & O_NONBLOCK) == 0) ++blocking;
  }
  return {all, blocking};
}

TEST(mariadb_tls, no_socket_blocks) {
  // Broken: OpenSSL waits on the event loop's thread for each answer, two seconds for each message of others.
  tls_files files;
  const mariadb_keys keys(files.signed_for("DNS:localhost"));
  const mariadb_server server(keys.options());
  const client a = open_client("mariadb://tester@127.0.0.1:" + std::to_string(server.port()) +
                               "/locks?connections=1&ssl_mode=required");
  for (int i = 0; i < 3; ++i) {
    auto held = mutex(a, "stock").acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    EXPECT_THAT(held->release(), succeeds());
  }
  // For commands and for wake-ups; both have been used.
  EXPECT_TRUE(eventually([&] { return sockets_to(server.port()) == std::pair(2, 0); }));
}

// Sends the beginning of a TLS server's handshake, and then nothing more.
class stalled_server {
 public:
  explicit stalled_server(std::uint16_t like) {
    words_.resize(1024);
    const int real = connected_to(like);
    words_.resize(static_cast<std::size_t>(::recv(real, words_.data(), words_.size(), 0)));
    ::close(real);
    ::listen(listener_, 16);
    // Not bound before: the system chooses the port.
    thread_ = std::jthread([this] {
      for (int each = 0; (each = ::accept(listener_, nullptr, nullptr)) >= 0;) {
        ::send(each, words_.data(), words_.size(), MSG_NOSIGNAL);
        taken_.push_back(each);
      }
    });
  }
  ~stalled_server() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (const int each : taken_) ::close(each);
    ::close(listener_);
  }
  stalled_server(const stalled_server&) = delete;
  stalled_server& operator=(const stalled_server&) = delete;

  [[nodiscard]] std::uint16_t port() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
  }

 private:
  static int connected_to(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int made = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("connect");
    }
    return made;
  }

  const int listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  std::string words_;
  std::vector<int> taken_;  // of the thread
  std::jthread thread_;
};

TEST(mariadb_tls, a_server_that_stalls_in_the_handshake_stalls_nobody_else) {
  // Broken: a frozen server freezes the whole client, including its leases on other servers, and
  // even its shutdown.
  tls_files files;
  const mariadb_keys keys(files.signed_for("DNS:localhost"));
  const mariadb_server server(keys.options());
  const stalled_server stalled(server.port());
  EXPECT_THAT(taken(stalled, "127.0.0.1", "&ssl_mode=required&connect_timeout=300ms"),
              fails_with(errc::unavailable));
}

}  // namespace
}  // namespace holdfast::test

#endif
