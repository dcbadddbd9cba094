// Who may ask `holdfast serve`. A browser on this machine is asked by every page it shows to send
// requests here: these are told by their Host (a foreign name that was made to point here) and Origin.
#pragma once

#include "cli/complaint.hpp"
#include "cli/http/server.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli::serve {

// "localhost", 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host);

// Without looking at where they differ, so that the time it takes tells nothing.
bool same_secret(std::string_view given, std::string_view secret) noexcept;

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
