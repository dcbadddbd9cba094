#include "cli/serve/answers.hpp"

#include "cli/json_value.hpp"

#include <sys/random.h>

#include <array>
#include <stdexcept>

namespace holdfast::cli::serve {

namespace {

// Names and payloads are text of others. Nothing is loaded from elsewhere, no page frames ours, nothing
// is kept by caches, and script comes from nowhere but the page itself.
http::response guarded(int status, std::string type, std::string body) {
  http::response made{.status = status, .type = std::move(type), .body = std::move(body)};
  made.headers = {{"Cache-Control", "no-store"},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cross-Origin-Resource-Policy", "same-origin"},
                  {"Cross-Origin-Opener-Policy", "same-origin"},
                  {"X-Frame-Options", "DENY"}};
  return made;
}

http::response harmless(int status, std::string type, std::string body) {
  http::response made = guarded(status, std::move(type), std::move(body));
  made.headers.emplace_back("Content-Security-Policy",
                            "default-src 'none'; frame-ancestors 'none'");
  return made;
}

std::string fresh_nonce() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("getrandom");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made;
  for (const unsigned char byte : bytes) {
    made += digits[byte >> 4U];
    made += digits[byte & 0xfU];
  }
  return made;
}

void fill_in_mark(std::string& text, std::string_view mark, std::string_view with) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), with);
  }
}

int status_for(errc code) {
  switch (code) {
    case errc::invalid:
      return 400;
    case errc::unsupported:
      return 501;
    case errc::unavailable:
    case errc::overloaded:
    case errc::cancelled:
      return 503;
    default:
      return 502;
  }
}

}  // namespace

http::response problem(int status, std::string_view what) {
  return harmless(status, "application/json", json::line({{"error", what}}));
}

http::response problem(const error& why, std::string_view what) {
  return problem(status_for(why.code), what);
}

http::response document(std::string json) {
  return harmless(200, "application/json", std::move(json));
}

http::response text_document(std::string body) {
  return harmless(200, "text/plain; version=0.0.4; charset=utf-8", std::move(body));
}

http::response live_page(bool needs_token) {
  const std::string nonce = fresh_nonce();
  std::string body(page_text());
  fill_in_mark(body, "{{nonce}}", nonce);
  fill_in_mark(body, "{{token}}", needs_token ? "needed" : "none");
  http::response made = guarded(200, "text/html; charset=utf-8", std::move(body));
  made.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
          "'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
          "frame-ancestors 'none'; require-trusted-types-for 'script'");
  return made;
}

}  // namespace holdfast::cli::serve
