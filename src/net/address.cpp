#include "net/address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace holdfast::net {

namespace {

struct free_list {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using address_list = std::unique_ptr<addrinfo, free_list>;

// No AI_ADDRCONFIG: if the only interface has just a link-local address, it refuses even 127.0.0.1.
address_list ask(const std::string& host, int flags, int& problem) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  problem = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  return address_list(problem == 0 ? found : nullptr);
}

}  // namespace

address::address(const sockaddr* raw, socklen_t size) noexcept
    : size_(std::min(size, static_cast<socklen_t>(sizeof storage_))) {
  std::memcpy(&storage_, raw, size_);
}

std::optional<address> address::numeric(const std::string& host, std::uint16_t port) {
  int problem = 0;
  const address_list found = ask(host, AI_NUMERICHOST, problem);
  if (found == nullptr) return std::nullopt;
  return address(found->ai_addr, found->ai_addrlen).with_port(port);
}

result<address> address::unix_socket(const std::string& path) {
  sockaddr_un raw{};
  raw.sun_family = AF_UNIX;
  if (path.size() >= sizeof raw.sun_path) {
    return failure(errc::invalid, "the path of a unix socket has at most " +
                                      std::to_string(sizeof raw.sun_path - 1) + " bytes");
  }
  std::memcpy(raw.sun_path, path.data(), path.size());
  return address(reinterpret_cast<const sockaddr*>(&raw), sizeof raw);
}

address address::with_port(std::uint16_t port) const noexcept {
  address changed = *this;
  const in_port_t wire = htons(port);
  if (family() == AF_INET) {
    std::memcpy(reinterpret_cast<char*>(&changed.storage_) + offsetof(sockaddr_in, sin_port), &wire,
                sizeof wire);
  } else if (family() == AF_INET6) {
    std::memcpy(reinterpret_cast<char*>(&changed.storage_) + offsetof(sockaddr_in6, sin6_port),
                &wire, sizeof wire);
  }
  return changed;
}

std::string address::text() const {
  if (family() == AF_UNIX) {
    return "unix:" +
           std::string(reinterpret_cast<const char*>(&storage_) + offsetof(sockaddr_un, sun_path));
  }
  char host[NI_MAXHOST] = "?";
  char port[NI_MAXSERV] = "?";
  ::getnameinfo(data(), size_, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return family() == AF_INET6 ? "[" + std::string(host) + "]:" + port
                              : std::string(host) + ":" + port;
}

result<addresses> look_up(const std::string& host) {
  int problem = 0;
  const address_list found = ask(host, 0, problem);
  if (found == nullptr) {
    const std::string why =
        problem == EAI_SYSTEM ? std::system_category().message(errno) : ::gai_strerror(problem);
    return failure(errc::unavailable, "cannot resolve '" + host + "': " + why);
  }
  addresses list;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    list.emplace_back(one->ai_addr, one->ai_addrlen);
  }
  return list;
}

}  // namespace holdfast::net
