// The HTTP server of holdfast serve by itself, with shorter limits.
#include "cli/http/server.hpp"
#include "cli/program.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::cli_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t large = 32UL << 20;  // more than fits on the way

// GET /large is answered with as many bytes.
class small_server {
 public:
  explicit small_server(const http::limits& limits) {
    const auto path = std::filesystem::path(program_path()).parent_path() / "holdfast_http.so";
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw std::runtime_error(::dlerror());
    using make = http::server*(http::handler&&, const http::limits&);
    auto* const made = reinterpret_cast<make*>(::dlsym(module, http::module_function));
    server_.reset(made(
        [](const http::request& asked) {
          return http::response{.body = std::string(asked.target == "/large" ? large : 1, 'x')};
        },
        limits));
    if (!server_->bind("127.0.0.1", 0)) throw std::runtime_error("bind");
    thread_ = std::jthread([this] {
      server_->run();
      ended_ = true;
    });
  }
  small_server(const small_server&) = delete;
  small_server& operator=(const small_server&) = delete;
  ~small_server() { server_->stop(); }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  void stop() { server_->stop(); }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::unique_ptr<http::server> server_;
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

class request {
 public:
  request(std::uint16_t port, const std::string& path, int window = 64 << 10) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string head = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 ||
        ::send(socket_, head.data(), head.size(), MSG_NOSIGNAL) < 0) {
      throw std::runtime_error("connect");
    }
  }
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  ~request() { ::close(socket_); }

  // How many bytes were read; 0: that was all.
  std::size_t read_some() {
    char piece[4096];
    const ssize_t got = ::recv(socket_, piece, sizeof piece, 0);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

// Takes a moment.
void ask(const small_server& server, int times) {
  for (; times > 0; --times) {
    request small(server.port(), "/small");
    while (small.read_some() != 0) {
    }
  }
}

// Reads an answer to its end, with pauses; how much of it there was.
std::size_t all_of(request& slow, const small_server& clock, int pause) {
  std::size_t all = 0;
  while (const std::size_t got = slow.read_some()) {
    all += got;
    ask(clock, pause);
  }
  return all;
}

TEST(http_server, cuts_no_answer_that_is_read_steadily) {
  // Broken: over a slow line the list of names ends in the middle.
  const small_server server({.write_within = 250ms});
  // A machine may stand still for so long: then another try.
  EXPECT_TRUE(eventually([&] {
    request slow(server.port(), "/large");
    std::size_t all = 0;
    while (const std::size_t got = slow.read_some()) {
      all += got;
      ask(server, 1);
    }
    return all > large;
  }));
}

TEST(http_server, ends_though_an_answer_is_still_being_read) {
  // Broken: on SIGTERM it goes on for as long as its slowest client likes.
  const small_server clock({});
  small_server server({.write_within = 250ms});
  request slow(server.port(), "/large", 1 << 20);
  ASSERT_GT(slow.read_some(), 0U);
  server.stop();
  EXPECT_LT(all_of(slow, clock, 1), large);
  EXPECT_TRUE(eventually([&] { return server.ended(); }));
}

TEST(http_server, cuts_an_answer_of_which_too_little_is_read) {
  // Broken: a few bytes now and then keep a connection forever, and there are 64.
  const small_server clock({});
  const small_server server({.write_within = 250ms, .write_least = large});
  request slow(server.port(), "/large");
  EXPECT_LT(all_of(slow, clock, 16), large);
}

}  // namespace
}  // namespace holdfast::cli_test
