// Every engine that torture can start. Used by testbed.cpp only.
#pragma once

#include "support/etcd_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgresql_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_servers.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"
#include "torture/testbed.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::torture {

// A proxy between every client and one server, and the faults that it can cause.
//
// Not thread-safe.
class proxies {
 public:
  proxies(std::uint16_t server_port, std::uint32_t clients);

  [[nodiscard]] std::uint16_t port(std::uint32_t client) const { return proxies_[client]->port(); }

  [[nodiscard]] static bool can(fault what) noexcept {
    return what == fault::partition || what == fault::delay || what == fault::cut ||
           what == fault::truncate || what == fault::garble;
  }
  void begin(fault what, std::uint32_t client);
  void end(std::uint32_t client);

 private:
  std::vector<std::unique_ptr<test::fault_proxy>> proxies_;
};

// No server: a file in a folder of its own.
class embedded_testbed final : public testbed {
 public:
  [[nodiscard]] std::string url(std::uint32_t) const override { return quiet_url(); }
  [[nodiscard]] std::string quiet_url() const override {
    return "sqlite:" + (folder_.path() / "torture.db").string();
  }
  [[nodiscard]] bool can(fault what) const override { return what == fault::disk_full; }
  void begin(fault, std::uint32_t) override {}
  void end(fault, std::uint32_t) override {}

 private:
  test::temporary_folder folder_;
};

// One server behind a proxy for each client. `Server` has pause, resume, kill and start.
template <class Server>
class one_server_testbed : public testbed {
 public:
  one_server_testbed(std::unique_ptr<Server> server, std::uint32_t clients)
      : server_(std::move(server)), proxies_(server_->port(), clients) {}

  [[nodiscard]] std::string url(std::uint32_t client) const override {
    return url_at(proxies_.port(client));
  }
  [[nodiscard]] std::string quiet_url() const override { return url_at(server_->port()); }
  [[nodiscard]] bool can(fault what) const override {
    return proxies::can(what) || what == fault::pause_server || what == fault::kill_server;
  }
  void begin(fault what, std::uint32_t target) override {
    if (what == fault::pause_server) return server_->pause();
    if (what == fault::kill_server) return server_->kill();
    proxies_.begin(what, target);
  }
  void end(fault what, std::uint32_t target) override {
    if (what == fault::pause_server) return server_->resume();
    if (what == fault::kill_server) return server_->start();
    proxies_.end(target);
  }

 protected:
  [[nodiscard]] virtual std::string url_at(std::uint16_t port) const = 0;
  [[nodiscard]] Server& server() const { return *server_; }

 private:
  std::unique_ptr<Server> server_;
  proxies proxies_;
};

// Keeps every write over a kill.
test::redis_options durable_redis();

// The server forgets scripts and functions. (A replica refuses the latter.)
inline void flush_scripts(const test::redis_server& server) {
  server.cli({"SCRIPT", "FLUSH"});
  server.cli({"FUNCTION", "FLUSH"});
}

class redis_testbed final : public one_server_testbed<test::redis_server> {
 public:
  explicit redis_testbed(std::uint32_t clients)
      : one_server_testbed(std::make_unique<test::redis_server>(durable_redis()), clients) {}

  [[nodiscard]] bool can(fault what) const override {
    return what == fault::script_flush || one_server_testbed::can(what);
  }
  void begin(fault what, std::uint32_t target) override {
    if (what != fault::script_flush) return one_server_testbed::begin(what, target);
    flush_scripts(server());
  }
  void end(fault what, std::uint32_t target) override {
    if (what != fault::script_flush) one_server_testbed::end(what, target);
  }

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port) const override {
    return "redis://127.0.0.1:" + std::to_string(port);
  }
};

// `Server`: of SQL.
template <class Server>
class sql_testbed : public one_server_testbed<Server> {
 public:
  // `options`: of the URL, as "strategy=row".
  sql_testbed(std::uint32_t clients, std::string options)
      : one_server_testbed<Server>(std::make_unique<Server>(), clients),
        options_(std::move(options)) {}

  // If a connection is the hold, its end frees the lock before the holder has noticed.
  [[nodiscard]] bool forgets(fault what) const final {
    const bool bound = options_.starts_with("strategy");
    return bound && (proxies::can(what) || what == fault::kill_server);
  }

 protected:
  [[nodiscard]] const std::string& options() const { return options_; }

 private:
  const std::string options_;
};

class postgresql_testbed final : public sql_testbed<test::postgresql_server> {
 public:
  using sql_testbed::sql_testbed;

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port) const override {
    return "postgresql://tester@127.0.0.1:" + std::to_string(port) + "/postgres?schema=torture&" +
           options();
  }
};

class mariadb_testbed final : public sql_testbed<test::mariadb_server> {
 public:
  using sql_testbed::sql_testbed;

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port) const override {
    return "mariadb://tester@127.0.0.1:" + std::to_string(port) + "/locks?prefix=torture_&" +
           options();
  }
};

class zookeeper_testbed final : public one_server_testbed<test::zookeeper_server> {
 public:
  explicit zookeeper_testbed(std::uint32_t clients)
      : one_server_testbed(test::start_zookeeper(), clients) {}

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port) const override {
    return "zookeeper://127.0.0.1:" + std::to_string(port) + "/torture";
  }
};

class etcd_testbed final : public one_server_testbed<test::etcd_server> {
 public:
  explicit etcd_testbed(std::uint32_t clients) : one_server_testbed(test::start_etcd(), clients) {}

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port) const override {
    return "etcd://127.0.0.1:" + std::to_string(port) + "/torture";
  }
};

// Three members, each behind a proxy for each client.
class etcd_cluster_testbed final : public testbed {
 public:
  explicit etcd_cluster_testbed(std::uint32_t clients);
  [[nodiscard]] std::string url(std::uint32_t client) const override;
  [[nodiscard]] std::string quiet_url() const override;
  [[nodiscard]] bool can(fault what) const override;
  void begin(fault what, std::uint32_t target) override;
  void end(fault what, std::uint32_t target) override;

 private:
  test::etcd_cluster cluster_;
  std::vector<std::unique_ptr<proxies>> proxies_;  // by member
  test::etcd_server* stopped_ = nullptr;           // the leader at that time
};

// Five servers, each behind a proxy for each client.
class redlock_testbed final : public testbed {
 public:
  explicit redlock_testbed(std::uint32_t clients);
  [[nodiscard]] std::string url(std::uint32_t client) const override;
  [[nodiscard]] std::string quiet_url() const override;
  [[nodiscard]] bool can(fault what) const override;
  void begin(fault what, std::uint32_t target) override;
  void end(fault what, std::uint32_t target) override;

 private:
  static constexpr std::size_t members = 5;
  test::redlock_servers servers_;
  std::vector<std::unique_ptr<proxies>> proxies_;  // by server
};

// A master, two replicas and three sentinels; clients connect to what the sentinels name, so
// there is no proxy in between.
class sentinel_testbed final : public testbed {
 public:
  sentinel_testbed();
  [[nodiscard]] std::string url(std::uint32_t) const override { return quiet_url(); }
  [[nodiscard]] std::string quiet_url() const override { return sentinels_.url(); }
  [[nodiscard]] bool can(fault what) const override;
  [[nodiscard]] bool forgets(fault what) const override;
  void begin(fault what, std::uint32_t target) override;
  void end(fault what, std::uint32_t target) override;

 private:
  test::redis_sentinels sentinels_;
  test::redis_server* stopped_ = nullptr;
};

class cluster_testbed final : public testbed {
 public:
  [[nodiscard]] std::string url(std::uint32_t) const override { return quiet_url(); }
  [[nodiscard]] std::string quiet_url() const override { return cluster_.url(); }
  [[nodiscard]] bool can(fault what) const override;
  [[nodiscard]] bool forgets(fault what) const override;
  void begin(fault what, std::uint32_t target) override;
  void end(fault what, std::uint32_t target) override;

 private:
  test::redis_cluster cluster_;
};

}  // namespace holdfast::torture
