#include "torture/testbed.hpp"

#include "torture/testbeds.hpp"

#include <holdfast/spi/url.hpp>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>

namespace holdfast::torture {

namespace {

namespace fs = std::filesystem;

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void need(const std::string& program, const std::string& package) {
  if (in_path(program)) return;
  throw missing_program(program + " is not in PATH; Debian's package is " + package);
}

void need_redis() {
  need("redis-server", "redis-server");
  need("redis-cli", "redis-tools");
}

void need_zookeeper() {
  need("java", "default-jre-headless");
  if (!fs::exists("/usr/share/java/zookeeper.jar")) {
    throw missing_program("zookeeper.jar is not in /usr/share/java; Debian's package is zookeeper");
  }
}

void need_etcd() {
  need("etcd", "etcd-server");
  need("etcdctl", "etcd-client");
}

void need_postgresql() {
  need("psql", "postgresql-client");
  std::error_code none;
  if (!in_path("postgres") && fs::is_empty("/usr/lib/postgresql", none)) {
    throw missing_program("no PostgreSQL server is installed; Debian's package is postgresql");
  }
}

void need_mariadb() {
  need("mariadb", "mariadb-client");
  if (!in_path("mariadbd") && !fs::exists("/usr/sbin/mariadbd")) {
    throw missing_program("mariadbd is not in PATH; Debian's package is mariadb-server");
  }
}

std::unique_ptr<testbed> start_postgresql(std::uint32_t clients, const char* options) {
  need_postgresql();
  return std::make_unique<postgresql_testbed>(clients, options);
}

std::unique_ptr<testbed> start_mariadb(std::uint32_t clients, const char* options) {
  need_mariadb();
  return std::make_unique<mariadb_testbed>(clients, options);
}

struct entry {
  std::string_view name;
  std::unique_ptr<testbed> (*start)(std::uint32_t clients);
};

constexpr std::array entries{
    entry{"embedded",
          [](std::uint32_t) -> std::unique_ptr<testbed> {
            return std::make_unique<embedded_testbed>();
          }},
    entry{"redis",
          [](std::uint32_t clients) -> std::unique_ptr<testbed> {
            need_redis();
            return std::make_unique<redis_testbed>(clients);
          }},
    entry{"redis-sentinel",
          [](std::uint32_t) -> std::unique_ptr<testbed> {
            need_redis();
            return std::make_unique<sentinel_testbed>();
          }},
    entry{"redis-cluster",
          [](std::uint32_t) -> std::unique_ptr<testbed> {
            need_redis();
            return std::make_unique<cluster_testbed>();
          }},
    entry{"redlock",
          [](std::uint32_t clients) -> std::unique_ptr<testbed> {
            need_redis();
            return std::make_unique<redlock_testbed>(clients);
          }},
    entry{"zookeeper",
          [](std::uint32_t clients) -> std::unique_ptr<testbed> {
            need_zookeeper();
            return std::make_unique<zookeeper_testbed>(clients);
          }},
    entry{"etcd",
          [](std::uint32_t clients) -> std::unique_ptr<testbed> {
            need_etcd();
            return std::make_unique<etcd_testbed>(clients);
          }},
    entry{"etcd-cluster",
          [](std::uint32_t clients) -> std::unique_ptr<testbed> {
            need_etcd();
            return std::make_unique<etcd_cluster_testbed>(clients);
          }},
    entry{"postgresql",
          [](std::uint32_t clients) { return start_postgresql(clients, "connections=2"); }},
    entry{"postgresql-session",
          [](std::uint32_t clients) { return start_postgresql(clients, "strategy=session"); }},
    entry{"postgresql-row",
          [](std::uint32_t clients) { return start_postgresql(clients, "strategy=row"); }},
    entry{"mariadb", [](std::uint32_t clients) { return start_mariadb(clients, "connections=4"); }},
    entry{"mariadb-session",
          [](std::uint32_t clients) { return start_mariadb(clients, "strategy=session"); }},
    entry{"mariadb-row",
          [](std::uint32_t clients) { return start_mariadb(clients, "strategy=row"); }},
};

// The position of the only host of a URL; none: there are several, or none, or the connection is
// encrypted, and a proxy would not match the certificate's host.
struct host_place {
  std::size_t begin = 0;
  std::size_t length = 0;
  std::uint16_t port = 0;
};

std::optional<host_place> only_host(const std::string& url) {
  const auto parsed = spi::parse_url(url);
  if (!parsed || parsed->hosts.size() != 1) return std::nullopt;
  constexpr std::array<std::pair<std::string_view, std::uint16_t>, 6> ports{{{"redis", 6379},
                                                                             {"zookeeper", 2181},
                                                                             {"etcd", 2379},
                                                                             {"postgresql", 5432},
                                                                             {"mariadb", 3306},
                                                                             {"mysql", 3306}}};
  host_place found;
  for (const auto& [scheme, port] : ports) {
    if (parsed->scheme == scheme) found.port = port;
  }
  const spi::endpoint& host = parsed->hosts.front();
  // The proxy goes to the loopback interface only.
  if (found.port == 0 || (host.host != "127.0.0.1" && host.host != "localhost")) {
    return std::nullopt;
  }
  if (host.port != 0) found.port = host.port;
  found.begin = url.find("://") + 3;
  const std::size_t end = std::min(url.find_first_of("/?", found.begin), url.size());
  const std::size_t at = url.rfind('@', end);
  if (at != std::string::npos && at > found.begin) found.begin = at + 1;
  found.length = end - found.begin;
  return found;
}

class external_testbed final : public testbed {
 public:
  external_testbed(std::string url, std::uint32_t clients) : url_(std::move(url)) {
    host_ = only_host(url_);
    if (host_) proxies_.emplace(host_->port, clients);
  }
  [[nodiscard]] std::string url(std::uint32_t client) const override {
    if (!proxies_) return url_;
    return std::string(url_).replace(host_->begin, host_->length,
                                     "127.0.0.1:" + std::to_string(proxies_->port(client)));
  }
  [[nodiscard]] std::string quiet_url() const override { return url_; }
  [[nodiscard]] bool can(fault what) const override {
    if (what == fault::disk_full) return url_.starts_with("sqlite:");
    return proxies_.has_value() && proxies::can(what);
  }
  void begin(fault what, std::uint32_t target) override {
    if (proxies_ && proxies::can(what)) proxies_->begin(what, target);
  }
  void end(fault what, std::uint32_t target) override {
    if (proxies_ && proxies::can(what)) proxies_->end(target);
  }

 private:
  std::string url_;
  std::optional<host_place> host_;
  std::optional<proxies> proxies_;
};

}  // namespace

bool testbed::forgets(fault) const { return false; }

const std::vector<std::string>& engines() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const entry& each : entries) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

std::unique_ptr<testbed> start_testbed(const std::string& engine, std::uint32_t clients) {
  for (const entry& each : entries) {
    if (each.name == engine) return each.start(clients);
  }
  throw std::runtime_error("no engine of this name can be started");
}

std::unique_ptr<testbed> foreign_testbed(const std::string& url, std::uint32_t clients) {
  return std::make_unique<external_testbed>(url, clients);
}

}  // namespace holdfast::torture
