// Where a server listens: a host with a port, or the path of a unix socket.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::net {

struct target {
  std::string host;  // a name, or a numeric IPv4 or IPv6 address without brackets
  std::uint16_t port = 0;
  std::string path;  // not empty: a unix socket, and host and port mean nothing

  // For messages: "db.example:6379", "[::1]:6379", "unix:/run/redis.sock".
  [[nodiscard]] std::string text() const {
    if (!path.empty()) return "unix:" + path;
    const bool six = host.find(':') != std::string::npos;
    return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
  }

  friend bool operator==(const target&, const target&) = default;
};

}  // namespace holdfast::net
