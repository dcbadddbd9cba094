#include "cli/listen_address.hpp"

#include "cli/number_text.hpp"

namespace holdfast::cli {

tl::expected<listen_address, std::string> parse_listen_address(const std::string& text) {
  const auto malformed = [] {
    return tl::unexpected(std::string("is written HOST:PORT, as in 127.0.0.1:4040 or [::1]:4040"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return malformed();
  std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != std::string::npos)) return malformed();
  const auto port = parse_number(text.substr(colon + 1), 0, 65'535);
  if (!port) return tl::unexpected("has a port that " + port.error());
  return listen_address{std::move(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace holdfast::cli
