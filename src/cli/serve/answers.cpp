#include "cli/serve/answers.hpp"

#include "cli/inspection.hpp"
#include "core/hex.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace holdfast::cli::serve {

namespace {

// The live page, put together from src/cli/page when the program was built. Its script and style
// have {{nonce}} where a nonce belongs.
constexpr std::string_view page_text =
#include <serve_page.inc>
    ;

// Names and payloads are other people's text. Nothing is loaded from elsewhere, no other page may
// frame ours, caches keep nothing, and script comes only from the page itself.
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
  return core::hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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
  std::string body(page_text);
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

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  return text;
}

// From Host or Host:port, in lower case; an IPv6 literal is in brackets there. Empty: it is
// neither.
std::string host_of(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const auto end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return {};
  const std::string_view rest = text.substr(end + (bracketed ? 1 : 0));
  if (!rest.empty() && rest.front() != ':') return {};
  return lower(std::string(bracketed ? text.substr(1, end - 1) : text.substr(0, end)));
}

enum class literal : std::uint8_t { none, loopback, other };

literal kind_of(const std::string& host) {
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return (ntohl(four.s_addr) >> 24U) == 127 ? literal::loopback : literal::other;
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&six) ? literal::loopback : literal::other;
  }
  return literal::none;
}

// Another site can make a name of its own point here, but not a numeric address or a name of ours.
bool host_is_ours(const access_rules& rules, std::string_view text) {
  const std::string host = host_of(text);
  if (host.empty()) return false;
  if (host == "localhost") return true;
  const literal kind = kind_of(host);
  if (kind == literal::loopback || (kind == literal::other && !rules.loopback)) return true;
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& one) { return lower(one) == host; });
}

bool origin_is_ours(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == host) return true;
  }
  return false;
}

// Does not depend on where they differ, so that its duration reveals nothing.
bool same_secret(std::string_view given, std::string_view secret) noexcept {
  volatile unsigned char different = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char wanted = secret.empty() ? '\0' : secret[i % secret.size()];
    different = static_cast<unsigned char>(different | (given[i] ^ wanted));
  }
  return different == 0 && !secret.empty();
}

}  // namespace

bool is_loopback(const std::string& host) {
  const std::string name = lower(host);
  return name == "localhost" || kind_of(name) == literal::loopback;
}

std::optional<http::response> refusal(const access_rules& rules, const http::request& request,
                                      needs what) {
  const std::string_view host = request.value_of("Host");
  if (request.count_of("Host") != 1 || !host_is_ours(rules, host)) {
    return problem(421, "this host name is not served here; --allow-host NAME allows one");
  }
  const std::string_view origin = request.value_of("Origin");
  if (request.count_of("Origin") != 0 && !origin_is_ours(origin, host)) {
    return problem(403, "requests of other origins are refused");
  }
  const std::string_view site = request.value_of("Sec-Fetch-Site");
  const bool navigates = request.value_of("Sec-Fetch-Mode") == "navigate" && what == needs::nothing;
  if ((site == "cross-site" || site == "same-site") && !navigates) {
    return problem(403, "requests of other sites are refused");
  }
  if (what == needs::nothing || rules.token.empty()) return std::nullopt;
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view given = request.value_of("Authorization");
  if (given.starts_with(scheme) && same_secret(given.substr(scheme.size()), rules.token)) {
    return std::nullopt;
  }
  http::response made = problem(401, "needs the token: Authorization: Bearer TOKEN");
  made.headers.emplace_back("WWW-Authenticate", "Bearer");
  return made;
}

}  // namespace holdfast::cli::serve
