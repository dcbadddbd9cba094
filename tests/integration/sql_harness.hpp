// Clients of real SQL servers, and ways to be in their way.
#pragma once

#include "contract/contract.hpp"
#include "support/tcp_gate.hpp"

#include <holdfast/holdfast.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::test {

// Throws lock_error.
inline client open_client(const std::string& url, client_options options = {}) {
  auto opened = client::open(url, std::move(options));
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

// The same URL by another port: through a tcp_gate.
inline std::string by_port(const std::string& url, std::uint16_t port) {
  const auto colon = url.find(':', url.find('@'));
  return url.substr(0, colon + 1) + std::to_string(port) + url.substr(url.find('/', colon));
}

}  // namespace holdfast::test
