// See the header.
#include "stores/redis/client/server_info.hpp"

#include <charconv>
#include <cstddef>

namespace holdfast::redis {

namespace {

server_info::role to_role(std::string_view word) noexcept {
  if (word == "master") return server_info::role::master;
  if (word == "slave" || word == "replica") return server_info::role::replica;
  if (word == "sentinel") return server_info::role::sentinel;
  return server_info::role::unknown;
}

// The value of "name:value" on a line of its own.
std::string_view field(std::string_view info, std::string_view name) noexcept {
  std::size_t at = 0;
  while (at < info.size()) {
    const std::size_t end = std::min(info.find("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    at = end + 2;
  }
  return {};
}

}  // namespace

server_version server_version::parse(std::string_view text) noexcept {
  server_version parsed;
  for (int* part : {&parsed.major, &parsed.minor, &parsed.patch}) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *part);
    if (problem != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) break;
    text.remove_prefix(1);
  }
  return parsed;
}

std::string server_version::text() const {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

void server_info::take_role(const reply& answer) {
  if (!answer.elements.empty()) part = to_role(answer.elements.front().words());
}

void server_info::take_info(const reply& answer) {
  const std::string_view text = answer.words();
  if (const auto found = field(text, "redis_version"); !found.empty()) {
    version = server_version::parse(found);
  }
  if (const auto found = field(text, "redis_mode"); !found.empty()) mode = found;
  if (const auto found = field(text, "run_id"); !found.empty()) run_id = found;
}

void server_info::take_hello(const reply& answer) {
  for (std::size_t i = 0; i + 1 < answer.elements.size(); i += 2) {
    const std::string_view name = answer.elements[i].words();
    const std::string_view value = answer.elements[i + 1].words();
    if (name == "version") version = server_version::parse(value);
    if (name == "mode") mode = value;
    if (name == "role") part = to_role(value);
  }
}

}  // namespace holdfast::redis
