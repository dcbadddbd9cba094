// A socket address: IPv4, IPv6 or unix, as connect() takes it.
#pragma once

#include <holdfast/result.hpp>

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::net {

class address {
 public:
  // A copy of what getaddrinfo() or accept() gave. `size` is at most that of sockaddr_storage.
  address(const sockaddr* raw, socklen_t size) noexcept;

  // std::nullopt if the text is a name and not an address. Asks no name server, never blocks.
  static std::optional<address> numeric(const std::string& host, std::uint16_t port);
  // invalid if the path is longer than the system allows.
  static result<address> unix_socket(const std::string& path);

  [[nodiscard]] const sockaddr* data() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  [[nodiscard]] address with_port(std::uint16_t port) const noexcept;
  [[nodiscard]] std::string text() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

using addresses = std::vector<address>;

// Asks the system's resolver; blocks for as long as that takes, which may be tens of seconds.
// unavailable with the resolver's own words. The addresses have port 0.
result<addresses> look_up(const std::string& host);

}  // namespace holdfast::net
