#include "support/free_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

namespace holdfast::test {

namespace {

bool can_listen(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return free;
}

}  // namespace

std::uint16_t free_port() {
  // Below 32768, where Linux's own range begins; below 22768, since Redis Cluster adds 10000.
  std::random_device source;
  std::uniform_int_distribution<int> any(10'000, 22'000);
  for (int left = 1'000; left > 0; --left) {
    const auto port = static_cast<std::uint16_t>(any(source));
    if (can_listen(port)) return port;
  }
  throw std::runtime_error("no free port");
}

}  // namespace holdfast::test
