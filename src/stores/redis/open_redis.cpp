#include "stores/redis/open_redis.hpp"

#include "net/openssl.hpp"
#include "net/time_option.hpp"
#include "runtime/password_file.hpp"
#include "stores/redis/client/hiredis.hpp"
#include "stores/redis/foreign/foreign_store.hpp"
#include "stores/redis/native_store.hpp"
#include "stores/redis/topology/cluster_topology.hpp"
#include "stores/redis/topology/sentinel_topology.hpp"
#include "stores/redis/voter.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::redis {

namespace {

constexpr std::uint16_t default_port = 6379;
constexpr std::uint16_t sentinel_port = 26'379;

// OpenSSL for digests, of scripts and long names.
result<void> load_libraries() {
  if (auto loaded = libhiredis.load(); !loaded) return loaded;
  return net::libcrypto.load();
}

// nullopt: the URL does not say.
std::optional<std::string> option(const spi::url& url, const std::string& name) {
  const auto found = url.options.find(name);
  if (found == url.options.end()) return std::nullopt;
  return found->second;
}

// "250ms", "2s".
result<duration> time_option(const spi::url& url, const std::string& name, duration otherwise,
                             duration least, duration most) {
  const auto text = option(url, name);
  if (!text) return otherwise;
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text->data() + text->size() - end));
  const bool written = problem == std::errc{} && number >= 0 && number <= 86'400'000 &&
                       (unit == "ms" || unit == "s");
  const duration value = unit == "s" ? duration(std::chrono::seconds(number))
                                     : duration(std::chrono::milliseconds(number));
  if (!written || value < least || value > most) {
    return failure(errc::invalid, "URL: " + name + " is written 250ms or 2s, from " +
                                      std::to_string(least / std::chrono::milliseconds(1)) +
                                      "ms to " + std::to_string(most / std::chrono::seconds(1)) +
                                      "s");
  }
  return value;
}

result<std::uint32_t> replicas_of(const spi::url& url) {
  const auto number = parse_number<std::uint32_t>(option(url, "wait_replicas").value_or("0"));
  constexpr std::uint32_t most = 100;
  if (number && *number <= most) return *number;
  return failure(errc::invalid, "URL: wait_replicas is a number from 0 to 100");
}

result<std::shared_ptr<const net::tls_context>> tls_of(const spi::url& url, bool secured) {
  constexpr std::string_view names[] = {"ca", "cert", "key", "sni", "verify"};
  if (!secured) {
    for (const std::string_view name : names) {
      if (url.options.contains(std::string(name))) {
        return failure(errc::invalid, "URL: " + std::string(name) + " is for TLS; write " +
                                          (url.scheme == "redis" ? "rediss://" : "tls=yes"));
      }
    }
    return std::shared_ptr<const net::tls_context>();
  }
  net::tls_options options;
  options.ca = option(url, "ca").value_or("");
  options.cert = option(url, "cert").value_or("");
  options.key = option(url, "key").value_or("");
  options.sni = option(url, "sni").value_or("");
  const std::string verify = option(url, "verify").value_or("full");
  if (verify != "full" && verify != "none") {
    return failure(errc::invalid, "URL: verify is full or none");
  }
  if (verify == "none") options.verify = net::tls_options::verification::none;
  return net::tls_context::make(options);
}

std::string_view without_slash(std::string_view path) noexcept {
  return path.starts_with('/') ? path.substr(1) : path;
}

// A path's last part; empty: 0.
result<std::uint32_t> database_of(std::string_view text, const char* example) {
  const auto number = parse_number<std::uint32_t>(text.empty() ? "0" : text);
  if (number) return *number;
  return failure(errc::invalid, std::string("URL: the database is a number, as in ") + example);
}

net::target target_of(const spi::endpoint& where, std::uint16_t otherwise) {
  return {where.host, where.port == 0 ? otherwise : where.port, {}};
}

// What a URL says about servers, users and TLS; where: about its first host. pauses: between
// two attempts to connect.
result<server_options> server_options_of(const spi::url& url, const net::backoff_limits& pauses) {
  server_options options;
  options.backoff = pauses;
  options.where = target_of(url.hosts.at(0), default_port);
  options.where.path = option(url, "socket").value_or("");
  options.user = url.user;
  options.password = url.password;
  if (!url.user.empty() && url.password.empty()) {
    return failure(errc::invalid,
                   "URL: a user without a password; give it in the URL, in "
                   "$HOLDFAST_PASSWORD or by --password-file");
  }
  const std::string secured = option(url, "tls").value_or("no");
  if (secured != "yes" && secured != "no") return failure(errc::invalid, "URL: tls is yes or no");
  auto tls = tls_of(url, url.scheme == "rediss" || secured == "yes");
  if (!tls) return tl::unexpected(std::move(tls.error()));
  options.tls = *std::move(tls);
  options.name = "holdfast";
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  options.connect_limit = limit->value_or(options.connect_limit);
  const auto replicas = replicas_of(url);
  if (!replicas) return tl::unexpected(replicas.error());
  options.wait_replicas = *replicas;
  const std::string functions = option(url, "functions").value_or("on");
  if (functions != "on" && functions != "off") {
    return failure(errc::invalid, "URL: functions is on or off");
  }
  options.functions = functions == "on";
  return options;
}

// Our credentials for the sentinels: they have users of their own.
result<void> introduce(const spi::url& url, server_options& sentinel) {
  const std::string how = option(url, "sentinel_auth").value_or("");
  if (!how.empty() && how != "same" && how != "none") {
    return failure(errc::invalid, "URL: sentinel_auth is none or same");
  }
  std::string user = option(url, "sentinel_user").value_or("");
  std::string password = option(url, "sentinel_password").value_or("");
  if (const auto named = option(url, "sentinel_password_file")) {
    const std::string& file = *named;
    if (!password.empty()) {
      return failure(errc::invalid, "URL: sentinel_password and sentinel_password_file");
    }
    auto read = runtime::read_password_file(file);
    if (!read) {
      return failure(errc::invalid,
                     "URL: sentinel_password_file=" + file + ": " + read.error().detail);
    }
    password = *std::move(read);
  }
  if (!user.empty() && password.empty()) {
    return failure(errc::invalid, "URL: a sentinel_user without a password");
  }
  if (how == "same") {
    if (password.empty()) return {};
    return failure(errc::invalid, "URL: sentinel_auth=same, and a password for sentinels");
  }
  sentinel.user = std::move(user);
  sentinel.password = spi::secret(std::move(password));
  return {};
}

result<std::shared_ptr<topology>> open_sentinel(const spi::url& url,
                                                const std::shared_ptr<spi::reactor>& reactor,
                                                const net::backoff_limits& pauses) {
  auto server = server_options_of(url, pauses);
  if (!server) return tl::unexpected(std::move(server.error()));
  const std::string_view path = without_slash(url.path);
  const auto slash = path.find('/');
  const std::string_view database = slash == path.npos ? "" : path.substr(slash + 1);
  sentinel_topology::settings how;
  how.master = path.substr(0, slash);
  if (how.master.empty()) {
    return failure(errc::invalid, "URL: the master's name is missing: redis+sentinel://host/NAME");
  }
  const auto number = database_of(database, "redis+sentinel://host/NAME/0");
  if (!number) return tl::unexpected(number.error());
  server->database = *number;
  server_options common = *server;
  if (auto fine = introduce(url, common); !fine) return tl::unexpected(std::move(fine.error()));
  common.wanted = server_options::role::any;
  common.database = 0;
  common.wait_replicas = 0;
  common.name.clear();
  for (const spi::endpoint& each : url.hosts) {
    common.where = target_of(each, sentinel_port);
    how.sentinels.push_back(common);
  }
  how.server = *std::move(server);
  return std::make_shared<sentinel_topology>(net::make_network(reactor), std::move(how));
}

result<std::shared_ptr<topology>> open_cluster(const spi::url& url,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses) {
  if (!url.path.empty() && url.path != "/" && url.path != "/0") {
    return failure(errc::invalid, "URL: a cluster has no databases but 0");
  }
  const foreign_format* const foreign = foreign_format_of(option(url, "dialect").value_or(""));
  if (foreign != nullptr && !foreign->has_tags) {
    return failure(errc::invalid,
                   "URL: a cluster has the dialects native and redisson only: the keys of the "
                   "others are in different slots");
  }
  auto server = server_options_of(url, pauses);
  if (!server) return tl::unexpected(std::move(server.error()));
  cluster_topology::settings how;
  for (const spi::endpoint& each : url.hosts) how.seeds.push_back(target_of(each, default_port));
  how.server = *std::move(server);
  if (foreign != nullptr && how.server.wait_replicas > 0) {
    return failure(errc::invalid, "URL: wait_replicas is for the native dialect on a cluster");
  }
  if (foreign != nullptr) how.partitions = slot_count;
  // A replica answers MOVED anyway.
  how.server.wanted = server_options::role::any;
  return std::make_shared<cluster_topology>(net::make_network(reactor), std::move(how));
}

result<std::shared_ptr<topology>> open_single(const spi::url& url,
                                              const std::shared_ptr<spi::reactor>& reactor,
                                              const net::backoff_limits& pauses) {
  auto options = server_options_of(url, pauses);
  if (!options) return tl::unexpected(std::move(options.error()));
  const auto database = database_of(without_slash(url.path), "redis://host/0");
  if (!database) return tl::unexpected(database.error());
  options->database = *database;
  return std::make_shared<single_server>(
      std::make_shared<node>(net::make_network(reactor), *options));
}

result<std::shared_ptr<topology>> servers_of(const spi::url& url,
                                             const std::shared_ptr<spi::reactor>& reactor,
                                             const net::backoff_limits& pauses) {
  if (url.scheme == "redis+sentinel") return open_sentinel(url, reactor, pauses);
  if (url.scheme == "redis+cluster") return open_cluster(url, reactor, pauses);
  if (url.hosts.size() != 1) {
    return failure(errc::invalid,
                   "URL: one host; several are written redis+sentinel:// or "
                   "redis+cluster:// or redlock://");
  }
  return open_single(url, reactor, pauses);
}

result<void> check_known(const spi::url& url) {
  if (url.scheme == "redis+sentinel") {
    return spi::check_options(
        url, {"dialect", "offer", "functions", "connect_timeout", "tls", "ca", "cert", "key", "sni",
              "verify", "sentinel_auth", "sentinel_user", "sentinel_password",
              "sentinel_password_file", "wait_replicas"});
  }
  if (url.scheme == "redis+cluster") {
    return spi::check_options(url, {"dialect", "offer", "functions", "connect_timeout", "tls", "ca",
                                    "cert", "key", "sni", "verify", "wait_replicas"});
  }
  return spi::check_options(url, {"dialect", "offer", "functions", "connect_timeout", "socket",
                                  "ca", "cert", "key", "sni", "verify", "wait_replicas"});
}

}  // namespace

result<std::shared_ptr<spi::store>> open_redis(const spi::url& url,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses) {
  if (auto loaded = load_libraries(); !loaded) return tl::unexpected(std::move(loaded.error()));
  if (auto known = check_known(url); !known) return tl::unexpected(std::move(known.error()));
  native_store::settings settings;
  using std::chrono::milliseconds;
  const auto offer =
      time_option(url, "offer", settings.offer, milliseconds(100), std::chrono::seconds(60));
  if (!offer) return tl::unexpected(offer.error());
  settings.offer = *offer;
  const auto replicas = replicas_of(url);
  if (!replicas) return tl::unexpected(replicas.error());
  if (*replicas > 0) settings.pushes = switchboard::pushes::as_hints;
  const std::string dialect = option(url, "dialect").value_or("native");
  const foreign_format* const foreign = foreign_format_of(dialect);
  if (dialect != "native" && foreign == nullptr) {
    return failure(errc::invalid, "URL: dialect is native, simple, python-redis-lock or redisson");
  }
  auto servers = servers_of(url, reactor, pauses);
  if (!servers) return tl::unexpected(std::move(servers.error()));
  if (foreign != nullptr) {
    return std::make_shared<foreign_store>(reactor, *std::move(servers), *foreign);
  }
  return std::make_shared<native_store>(reactor, *std::move(servers), settings);
}

result<std::shared_ptr<spi::store>> open_voter(const spi::url& url, const voting& how,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses) {
  if (auto loaded = load_libraries(); !loaded) return tl::unexpected(std::move(loaded.error()));
  auto servers = open_single(url, reactor, pauses);
  if (!servers) return tl::unexpected(std::move(servers.error()));
  auto inner = std::make_shared<native_store>(reactor, *servers, native_store::settings{});
  return std::make_shared<voter>(reactor, *std::move(servers), std::move(inner), how);
}

}  // namespace holdfast::redis
