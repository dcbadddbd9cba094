// A duration among the options of a URL: 250ms, 60s.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::net {

// `otherwise` if the URL does not have it; invalid: malformed, or more than a day.
inline result<duration> time_option(const spi::url& url, const std::string& name,
                                    duration otherwise) {
  const auto found = url.options.find(name);
  if (found == url.options.end()) return otherwise;
  const std::string& text = found->second;
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (problem == std::errc{} && number > 0 && number <= 86'400'000) {
    if (unit == "ms") return std::chrono::milliseconds(number);
    if (unit == "s" && number <= 86'400) return std::chrono::seconds(number);
  }
  return failure(errc::invalid, "URL: " + name + " is written 250ms or 60s, at most 86400s");
}

// How long connecting may take: name, connection, TLS and login together. None: the URL does not
// say. In a URL of PostgreSQL it may also be seconds without a unit, as in libpq.
inline result<std::optional<duration>> connect_timeout(const spi::url& url) {
  const auto found = url.options.find("connect_timeout");
  if (found == url.options.end()) return std::optional<duration>();
  spi::url given = url;
  const std::string& text = found->second;
  const bool bare = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (bare && url.scheme == "postgresql") given.options["connect_timeout"] = text + "s";
  const auto limit = time_option(given, "connect_timeout", duration{0});
  if (!limit || *limit > std::chrono::seconds(60)) {
    return failure(errc::invalid, "URL: connect_timeout is written 250ms or 2s, from 1ms to 60s");
  }
  return std::optional<duration>(*limit);
}

}  // namespace holdfast::net
