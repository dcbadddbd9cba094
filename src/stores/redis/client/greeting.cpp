#include "stores/redis/client/greeting.hpp"

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <charconv>
#include <cstddef>
#include <utility>

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

greeting::greeting(const server_options& options)
    : options_(options), where_("redis " + options.where.text()) {
  if (!options.user.empty()) {
    ask(part::auth, {"AUTH", options.user, options.password.reveal()});
    ask(part::whoami, {"ACL", "WHOAMI"});
  } else if (!options.password.empty()) {
    ask(part::auth, {"AUTH", options.password.reveal()});
  }
  if (options.database != 0) ask(part::select, {"SELECT", std::to_string(options.database)});
  if (!options.name.empty()) ask(part::name, {"CLIENT", "SETNAME", options.name});
  ask(part::role, {"ROLE"});
  ask(part::info, {"INFO", "server"});
}

void greeting::ask(part what, std::initializer_list<std::string_view> words) {
  bytes_ += command(words).bytes();
  asked_.push_back(what);
}

std::string greeting::take_bytes() { return std::exchange(bytes_, {}); }

result<greeting::step> greeting::take(const reply& answer) {
  if (answered_ == asked_.size()) {
    return failure(errc::unavailable, where_ + ": protocol error: a reply to no request");
  }
  if (auto fine = check(asked_[answered_++], answer); !fine) return tl::unexpected(fine.error());
  if (answered_ < asked_.size()) return step::more;
  if (std::exchange(in_the_dark_, false)) {
    // Needs no permission, but not every proxy knows it.
    ask(part::hello, {"HELLO", "2"});
    return step::more;
  }
  return conclude();
}

result<void> greeting::check(part what, const reply& answer) {
  // Sent instead of any answer: the server has no connections left.
  if (answer.is_error() && classify(answer) == trouble::passing) {
    return tl::unexpected(to_error(answer, "connect", where_));
  }
  const bool not_allowed = answer.is_error("NOPERM");
  switch (what) {
    case part::auth:
      return check_auth(answer);
    case part::whoami:
      return check_user(answer);
    case part::name:
      if (not_allowed || !answer.is_error()) return {};  // only for people
      break;
    case part::role:
      if (not_allowed) in_the_dark_ = true;
      if (not_allowed || !answer.is_error()) return server_.take_role(answer), result<void>{};
      break;
    case part::info:
      if (not_allowed) in_the_dark_ = true;
      if (not_allowed || !answer.is_error()) return server_.take_info(answer), result<void>{};
      break;
    case part::hello:
      if (!answer.is_error()) return server_.take_hello(answer), result<void>{};
      return failure(errc::denied, where_ +
                                       ": not allowed to see role and version; grant +role "
                                       "and +info");
    case part::select:
      if (!answer.is_error()) return {};
      if (not_allowed || classify(answer) == trouble::denied) break;
      return failure(errc::denied, where_ + ", SELECT: " + answer.text);
  }
  return tl::unexpected(to_error(answer, "connect", where_));
}

result<void> greeting::check_auth(const reply& answer) const {
  if (answer.is(reply::type::status) && answer.text == "OK") return {};
  if (answer.is_error("WRONGPASS")) {
    return failure(errc::denied,
                   where_ + ", AUTH: wrong user or password, or the user is disabled");
  }
  if (answer.text.starts_with("ERR AUTH <password> called without any password configured")) {
    return failure(errc::denied, where_ + ", AUTH: the server's default user has no password");
  }
  return failure(errc::denied, where_ + ", AUTH: refused");
}

// AUTH said OK already; this finds a proxy that says OK to everything.
result<void> greeting::check_user(const reply& answer) const {
  if (answer.is_error() || answer.words() == options_.user) return {};
  return failure(errc::denied, where_ + ", AUTH: the server authenticated a different user");
}

result<greeting::step> greeting::conclude() {
  if (server_.version < oldest_version) {
    return failure(errc::unsupported, where_ + ": version " + server_.version.text() +
                                          "; the oldest supported is " + oldest_version.text());
  }
  const bool master = server_.part == server_info::role::master;
  if (options_.wanted == server_options::role::master && !master) {
    return failure(errc::unavailable, where_ + ": is not a master (a replica takes no locks)");
  }
  return step::finished;
}

}  // namespace holdfast::redis
