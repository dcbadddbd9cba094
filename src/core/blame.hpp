// Where an error came from: every error that reaches a user names engine, server, operation, lock
// and cause.
#pragma once

#include <holdfast/result.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::core {

// "connect: Connection refused" becomes "redis db:6379, acquire 'stock', connect: Connection refused".
// `where`: "redis db:6379"; a store that names its server itself, before a colon, knows better.
inline error blamed(error why, std::string_view where, std::string_view verb,
                    std::string_view name) {
  const std::string_view engine = where.substr(0, where.find_first_of(" ,"));
  std::string_view cause = why.detail;
  std::string_view server = where;
  const std::size_t end = std::min(cause.find(": "), cause.find(", "));
  const bool named =
      cause.starts_with(engine) && cause.size() > engine.size() &&
      (cause[engine.size()] == ' ' || cause[engine.size()] == ':' || cause[engine.size()] == ',');
  if (named && end != std::string_view::npos) {
    if (end > engine.size()) server = cause.substr(0, end);
    cause.remove_prefix(end + 2);
  }
  std::string detail(server);
  detail.append(", ").append(verb);
  if (!name.empty()) detail.append(" '").append(name).append("'");
  if (!cause.empty()) detail.append(", ").append(cause);
  why.detail = std::move(detail);
  return why;
}

}  // namespace holdfast::core
