#include "net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::net {

namespace {

// Options that a kernel does not know are not worth a refusal: deadlines guard every request
// anyway.
void set(int socket, int level, int option, int value) noexcept {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

void set_tcp_options(int socket, const keepalive& life) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(life.idle.count()));
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(life.interval.count()));
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, life.count);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(life.unacknowledged.count()));
}

}  // namespace

error socket_error(const char* what, const std::string& where, int number) {
  return {errc::unavailable,
          std::string(what) + " " + where + ": " + std::system_category().message(number)};
}

result<connecting_socket> begin_connect(const address& to, const keepalive& life) {
  runtime::descriptor made(::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (made.get() < 0) return tl::unexpected(socket_error("socket", to.text(), errno));
  if (to.family() != AF_UNIX) set_tcp_options(made.get(), life);
  const bool connected = ::connect(made.get(), to.data(), to.size()) == 0;
  // Interrupted by a signal, it goes on like one under way.
  if (!connected && errno != EINPROGRESS && errno != EINTR) {
    return tl::unexpected(socket_error("connect", to.text(), errno));
  }
  return connecting_socket{std::move(made), connected};
}

result<void> end_connect(int socket, const address& to) {
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  if (problem != 0) return tl::unexpected(socket_error("connect", to.text(), problem));
  return {};
}

}  // namespace holdfast::net
