// Where a server of the program listens: HOST:PORT.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string>

namespace holdfast::cli {

struct listen_address {
  std::string host;
  std::uint16_t port = 0;
};

// "127.0.0.1:4040", "[::1]:4040", "localhost:0". The error is the end of the sentence "--listen ...".
tl::expected<listen_address, std::string> parse_listen_address(const std::string& text);

}  // namespace holdfast::cli
