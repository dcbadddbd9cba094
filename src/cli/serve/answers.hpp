// The answers of `holdfast serve`, with the headers that all of them have, and who is refused.
#pragma once

#include "cli/http/server.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli::serve {

// {"error": what}
http::response problem(int status, std::string_view what);
// From an engine's error.
http::response problem(const error& why, std::string_view what);
http::response document(std::string json);
http::response text_document(std::string body);
// The live page, with a nonce of its own for its script and style. It asks for the token if one is
// needed.
http::response live_page(bool needs_token);

// "localhost", 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host);

// Who may ask. Any page that a browser on this machine shows can make it send requests here: these
// are recognised by their Host (a foreign name that was made to point here) and Origin.
struct access_rules {
  bool loopback = true;
  std::vector<std::string> hosts{};  // further names in Host headers, for proxies
  std::string token{};               // empty: none is needed
};

enum class needs : std::uint8_t { nothing, token };

// None: go on. Else the refusal.
std::optional<http::response> refusal(const access_rules& rules, const http::request& request,
                                      needs what);

}  // namespace holdfast::cli::serve
