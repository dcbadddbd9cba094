#include "core/hex.hpp"

#include <holdfast/spi/url.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace holdfast::spi {

namespace {

result<std::string> decode(std::string_view text, const char* where) {
  std::optional<std::string> plain = core::unescaped(text);
  if (!plain || text.find("%00") != std::string_view::npos) {
    return failure(errc::invalid, std::string("URL: bad %-escape in the ") + where);
  }
  return *std::move(plain);
}

result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc{} || end != text.data() + text.size() || port == 0) {
    return failure(errc::invalid, "URL: a port is a number from 1 to 65535");
  }
  return port;
}

result<endpoint> parse_endpoint(std::string_view text) {
  endpoint where;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return failure(errc::invalid, "URL: '[' without ']'");
    where.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return failure(errc::invalid, "URL: only a port may follow ']'");
    }
    if (!rest.empty()) port = rest.substr(1);
  } else {
    const auto colon = text.rfind(':');
    auto host = decode(text.substr(0, colon), "host");
    if (!host) return tl::unexpected(host.error());
    where.host = *host;
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
    if (where.host.find(':') != std::string::npos) {
      return failure(errc::invalid, "URL: put IPv6 addresses in brackets");
    }
  }
  if (where.host.empty()) return failure(errc::invalid, "URL: a host is missing");
  if (!port.empty() || text.ends_with(':')) {
    auto number = parse_port(port);
    if (!number) return tl::unexpected(number.error());
    where.port = *number;
  }
  return where;
}

result<void> parse_authority(std::string_view text, url& into) {
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    const std::string_view credentials = text.substr(0, at);
    const auto colon = credentials.find(':');
    auto user = decode(credentials.substr(0, colon), "user");
    if (!user) return tl::unexpected(user.error());
    into.user = *user;
    if (colon != std::string_view::npos) {
      auto password = decode(credentials.substr(colon + 1), "password");
      if (!password) return tl::unexpected(password.error());
      into.password = secret(std::move(*password));
    }
    text.remove_prefix(at + 1);
  }
  while (!text.empty()) {
    const auto comma = text.find(',');
    auto where = parse_endpoint(text.substr(0, comma));
    if (!where) return tl::unexpected(where.error());
    into.hosts.push_back(std::move(*where));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return failure(errc::invalid, "URL: a host is missing after ','");
  }
  return {};
}

result<void> parse_options(std::string_view text, url& into) {
  while (!text.empty()) {
    const auto next = text.find('&');
    const std::string_view one = text.substr(0, next);
    const auto equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return failure(errc::invalid, "URL: an option is written name=value");
    }
    auto key = decode(one.substr(0, equals), "options");
    auto value = decode(one.substr(equals + 1), "options");
    if (!key) return tl::unexpected(key.error());
    if (!value) return tl::unexpected(value.error());
    if (!into.options.emplace(*key, *value).second) {
      return failure(errc::invalid, "URL: option '" + *key + "' is given twice");
    }
    if (next == std::string_view::npos) break;
    text.remove_prefix(next + 1);
  }
  return {};
}

// Where the password is in a URL's text: [first, second), or nothing.
std::optional<std::pair<std::size_t, std::size_t>> password_in(std::string_view text) {
  const auto slashes = text.find("://");
  if (slashes == std::string_view::npos) return std::nullopt;
  const std::size_t start = slashes + 3;
  const std::size_t end = std::min(text.find_first_of("/?#", start), text.size());
  const auto at = text.substr(start, end - start).rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto colon = text.substr(start, at).find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair{start + colon, start + at};
}

// Valkey is Redis in every respect that matters here: everything below has one name for both.
std::string engine_scheme(std::string_view given) {
  constexpr std::string_view valkey = "valkey";
  const std::string_view form = given.starts_with(valkey) ? given.substr(valkey.size()) : "?";
  const bool known = form.empty() || form == "s" || form == "+sentinel" || form == "+cluster";
  return known ? "redis" + std::string(form) : std::string(given);
}

}  // namespace

secret::~secret() {
  // volatile: a plain fill before the end of life is optimised away.
  volatile char* text = text_.data();
  for (std::size_t i = 0; i < text_.size(); ++i) text[i] = 0;
}

result<url> parse_url(std::string_view text) {
  const auto colon = text.find(':');
  const auto lower = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-';
  };
  if (colon == std::string_view::npos || colon == 0 ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), lower)) {
    return failure(errc::invalid, "URL: it must begin with a scheme such as redis:// or sqlite:");
  }
  url parsed;
  parsed.scheme = engine_scheme(text.substr(0, colon));
  text.remove_prefix(colon + 1);
  if (text.find('#') != std::string_view::npos) {
    return failure(errc::invalid, "URL: '#' must be written %23");
  }
  if (const auto query = text.find('?'); query != std::string_view::npos) {
    if (auto fine = parse_options(text.substr(query + 1), parsed); !fine) {
      return tl::unexpected(fine.error());
    }
    text = text.substr(0, query);
  }
  if (text.starts_with("//")) {
    text.remove_prefix(2);
    const auto slash = text.find('/');
    if (auto fine = parse_authority(text.substr(0, slash), parsed); !fine) {
      return tl::unexpected(fine.error());
    }
    text = slash == std::string_view::npos ? std::string_view{} : text.substr(slash);
  }
  auto path = decode(text, "path");
  if (!path) return tl::unexpected(path.error());
  parsed.path = std::move(*path);
  return parsed;
}

std::string without_password(std::string_view text) {
  std::string clean(text);
  if (const auto where = password_in(text)) clean.erase(where->first, where->second - where->first);
  return clean;
}

std::string url::redacted() const {
  std::string text = scheme + ":";
  if (!hosts.empty()) {
    text += "//";
    if (!user.empty()) text += user + "@";
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const bool six = hosts[i].host.find(':') != std::string::npos;
      text += (i == 0 ? "" : ",") + (six ? "[" + hosts[i].host + "]" : hosts[i].host);
      if (hosts[i].port != 0) text += ":" + std::to_string(hosts[i].port);
    }
  }
  return text + path;
}

result<void> check_options(const url& url, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : url.options) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string list;
    for (const std::string_view one : known) list += std::string(one) + ", ";
    // Known to all engines: stores/degraded.
    return failure(errc::invalid, "URL: unknown option '" + key + "' for " + url.scheme +
                                      "; known: " + list + "breaker, breaker_pause, degrade");
  }
  return {};
}

}  // namespace holdfast::spi
