// See the header.
#include "stores/redis/checks.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace holdfast::redis {

namespace {

using status = spi::check::status;

std::int64_t number(std::string_view text) noexcept {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_local(const net::target& where) noexcept {
  return !where.path.empty() || where.host == "localhost" || where.host == "::1" ||
         where.host.starts_with("127.");
}

}  // namespace

std::string_view info_field(std::string_view info, std::string_view name) noexcept {
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

spi::check check_server(const server_info& server, const std::string& where) {
  return {"server", status::ok, where + " answers, version " + server.version.text(), ""};
}

spi::check check_eviction(std::string_view info) {
  const std::string policy(info_field(info, "maxmemory_policy"));
  if (policy.empty()) {
    return {"eviction", status::warn, "the server does not tell its maxmemory-policy",
            "allow INFO, and see that the policy is noeviction"};
  }
  if (policy == "noeviction") return {"eviction", status::ok, "maxmemory-policy noeviction", ""};
  const bool limited = number(info_field(info, "maxmemory")) > 0;
  return {"eviction", limited ? status::fail : status::warn,
          "maxmemory-policy " + policy +
              (limited ? ": the server may delete locks" : ", but maxmemory is not set"),
          "CONFIG SET maxmemory-policy noeviction, or give locks a server of their own"};
}

spi::check check_memory(std::string_view info) {
  const std::int64_t most = number(info_field(info, "maxmemory"));
  const std::int64_t used = number(info_field(info, "used_memory"));
  if (most == 0) return {"memory", status::ok, "maxmemory is not set", ""};
  const std::int64_t percent = used * 100 / most;
  const std::string detail = std::to_string(percent) + " % of maxmemory used";
  if (percent >= 100) {
    return {"memory", status::fail, detail + ": no new lock can be taken",
            "raise maxmemory, or free memory"};
  }
  if (percent >= 90) return {"memory", status::warn, detail, "raise maxmemory, or free memory"};
  return {"memory", status::ok, detail, ""};
}

spi::check check_persistence(std::string_view info, const std::optional<std::string>& fsync) {
  if (info_field(info, "aof_last_write_status") == "err" ||
      info_field(info, "rdb_last_bgsave_status") == "err") {
    return {"persistence", status::fail, "the server cannot write to its disk",
            "look at its disk and log; until then it may refuse every write"};
  }
  if (info_field(info, "aof_enabled") != "1") {
    return {
        "persistence", status::warn,
        "appendonly is off: a restart forgets all holders; fencing tokens still grow",
        "CONFIG SET appendonly yes, and appendfsync always where a power cut must not lose a lock"};
  }
  if (fsync && *fsync == "always") {
    return {"persistence", status::ok, "appendonly, appendfsync always", ""};
  }
  return {"persistence", status::ok,
          "appendonly, appendfsync " + fsync.value_or("unknown") +
              ": a power cut may lose the last second",
          ""};
}

spi::check check_replicas(std::string_view info) {
  const std::int64_t count = number(info_field(info, "connected_slaves"));
  if (count == 0) return {"replicas", status::ok, "none", ""};
  return {
      "replicas", status::warn,
      std::to_string(count) + ": replication is asynchronous, a failover may forget the last locks",
      "let the resource check fencing tokens"};
}

spi::check check_permissions(const std::vector<std::string>& refused, const std::string& user) {
  if (refused.empty()) return {"permissions", status::ok, "all commands and keys allowed", ""};
  std::string list;
  for (const std::string& one : refused) list += (list.empty() ? "" : " ") + one;
  return {"permissions", status::fail, "not allowed: " + list,
          "ACL SETUSER " + (user.empty() ? std::string("default") : user) + " " + list};
}

spi::check check_channels(const std::optional<error>& refusal) {
  if (!refusal) return {"channels", status::ok, "grants are pushed", ""};
  return {"channels", status::fail, "cannot subscribe: " + refusal->detail,
          "grant +subscribe +publish +pubsub &holdfast:*"};
}

spi::check check_scripts(bool functions, const std::optional<error>& refusal) {
  if (!refusal) {
    return {"scripts", status::ok,
            functions ? "the library of functions is loaded" : "Lua scripts run", ""};
  }
  if (functions) {
    return {"scripts", status::fail, refusal->detail,
            "grant +fcall, and +function|load or let an administrator load the library: holdfast "
            "redis-library | redis-cli -x FUNCTION LOAD; where there are no functions: "
            "?functions=off"};
  }
  return {"scripts", status::fail, refusal->detail,
          "grant +eval +evalsha; servers and proxies without Lua cannot be used"};
}

duration clock_ahead(duration theirs, duration asked, duration heard) noexcept {
  if (theirs < asked) return theirs - asked;
  return std::max(theirs - heard, duration{0});
}

spi::check check_clock(duration ahead) {
  constexpr duration tolerated = std::chrono::seconds(2);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(ahead).count();
  const std::string detail = "the server's clock is " + std::to_string(ms < 0 ? -ms : ms) + " ms " +
                             (ms < 0 ? "behind" : "ahead of") + " ours";
  if (ahead < -tolerated || ahead > tolerated) {
    return {"clock", status::warn, detail,
            "let NTP keep both; leases end by the server's clock, which must not jump"};
  }
  return {"clock", status::ok, detail, ""};
}

spi::check check_transport(const server_options& options) {
  if (options.tls != nullptr && !options.tls->verifies()) {
    return {"transport", status::warn, "TLS without verification: any server is trusted",
            "give ca=FILE instead of verify=none"};
  }
  if (options.tls != nullptr) return {"transport", status::ok, "TLS, verified", ""};
  if (is_local(options.where)) return {"transport", status::ok, "on this machine", ""};
  if (!options.password.empty()) {
    return {"transport", status::warn, "the password is sent over the network unencrypted",
            "use rediss://"};
  }
  return {"transport", status::warn, "plain text over the network", "use rediss://"};
}

spi::check check_access(const server_options& options) {
  if (!options.password.empty()) return {"access", status::ok, "with a password", ""};
  if (is_local(options.where)) {
    return {"access", status::ok, "no password, on this machine", ""};
  }
  return {"access", status::warn, "anyone who can reach the server can take and break locks",
          "create a user for locks, with a password"};
}

}  // namespace holdfast::redis
