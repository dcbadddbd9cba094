// See the header.
#include "stores/redis/topology/open_topology.hpp"

#include "runtime/password_file.hpp"
#include "stores/redis/open_redis.hpp"
#include "stores/redis/topology/cluster_topology.hpp"
#include "stores/redis/topology/sentinel_topology.hpp"

#include <charconv>
#include <string>
#include <utility>

namespace holdfast::redis {

namespace {

constexpr std::uint16_t sentinel_port = 26'379;

// Who we are to the sentinels: they have users of their own.
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
  auto server = server_options_of(url, 0, pauses);
  if (!server) return tl::unexpected(std::move(server.error()));
  std::string_view path = url.path;
  if (path.starts_with('/')) path.remove_prefix(1);
  const auto slash = path.find('/');
  const std::string_view database = slash == path.npos ? "" : path.substr(slash + 1);
  sentinel_topology::settings how;
  how.master = path.substr(0, slash);
  if (how.master.empty()) {
    return failure(errc::invalid, "URL: the master's name is missing: redis+sentinel://host/NAME");
  }
  if (!database.empty()) {
    const char* const end = database.data() + database.size();
    const auto [read, problem] = std::from_chars(database.data(), end, server->database);
    if (problem != std::errc{} || read != end) {
      return failure(errc::invalid,
                     "URL: the database is a number, as in redis+sentinel://host/NAME/0");
    }
  }
  server_options common = *server;
  if (auto fine = introduce(url, common); !fine) return tl::unexpected(std::move(fine.error()));
  for (std::size_t i = 0; i < url.hosts.size(); ++i) {
    server_options sentinel = common;
    sentinel.where = {url.hosts[i].host, url.hosts[i].port, {}};
    if (sentinel.where.port == 0) sentinel.where.port = sentinel_port;
    sentinel.wanted = server_options::role::any;
    sentinel.database = 0;
    sentinel.wait_replicas = 0;
    sentinel.name.clear();
    how.sentinels.push_back(std::move(sentinel));
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
  if (url.options.contains("dialect") && url.options.at("dialect") != "native") {
    return failure(errc::invalid,
                   "URL: a cluster has the native dialect only: the keys of the others lie in "
                   "different slots");
  }
  auto server = server_options_of(url, 0, pauses);
  if (!server) return tl::unexpected(std::move(server.error()));
  cluster_topology::settings how;
  for (std::size_t i = 0; i < url.hosts.size(); ++i) {
    auto each = server_options_of(url, i, pauses);
    if (!each) return tl::unexpected(std::move(each.error()));
    how.seeds.push_back(each->where);
  }
  how.server = *std::move(server);
  // A replica answers MOVED by itself.
  how.server.wanted = server_options::role::any;
  return std::make_shared<cluster_topology>(net::make_network(reactor), std::move(how));
}

}  // namespace

result<std::shared_ptr<topology>> open_topology(const spi::url& url,
                                                const std::shared_ptr<spi::reactor>& reactor,
                                                const net::backoff_limits& pauses) {
  return url.scheme == "redis+cluster" ? open_cluster(url, reactor, pauses)
                                       : open_sentinel(url, reactor, pauses);
}

}  // namespace holdfast::redis
