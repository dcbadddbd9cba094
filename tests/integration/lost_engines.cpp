#include "integration/lost_engines.hpp"

#include "integration/postgresql_harness.hpp"
#include "support/etcd_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/redis_server.hpp"
#include "support/zookeeper_server.hpp"

namespace holdfast::test {

namespace {

#ifdef HOLDFAST_WITH_REDIS
struct own_redis {
  // On disk before it is answered: a killed server comes back with what it knew.
  redis_server server{
      {.tls = false, .arguments = {"--appendonly", "yes", "--appendfsync", "always"}, .admin = {}}};
};

class redis_behind_proxy : private own_redis, public lost_engine {
 public:
  redis_behind_proxy() : lost_engine(server.port()) {}

  [[nodiscard]] std::string url() const override {
    return "redis://127.0.0.1:" + std::to_string(proxy().port()) + "?connect_timeout=2s";
  }

 protected:
  redis_server& redis() { return server; }
};

class redis_killed final : public redis_behind_proxy {
 public:
  void lose() override { redis().kill(); }
  void give_back() override { redis().start(); }
};

class redis_stopped final : public redis_behind_proxy {
 public:
  void lose() override { redis().pause(); }
  void give_back() override { redis().resume(); }
};
#endif

#ifdef HOLDFAST_WITH_POSTGRESQL
class postgresql_behind_proxy : public lost_engine {
 public:
  postgresql_behind_proxy() : lost_engine(troubled_server().port()) {}

  [[nodiscard]] std::string url() const override { return by_port(url_, proxy().port()); }

 private:
  const std::string url_ = troubled_server().url(fresh_schema());
};

class postgresql_ended final : public postgresql_behind_proxy {
 public:
  // A test that fails half-way leaves the server to the next.
  ~postgresql_ended() override {
    if (ended_) troubled_server().start();
  }
  void lose() override {
    troubled_server().stop(postgresql_server::shutdown::immediate);
    ended_ = true;
  }
  void give_back() override {
    troubled_server().start();
    ended_ = false;
  }

 private:
  bool ended_ = false;
};
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
struct common_zookeeper {
  shared_zookeeper server = use_shared_zookeeper();

  [[nodiscard]] std::uint16_t server_port() const {
    return static_cast<std::uint16_t>(std::stoi(server.hosts.substr(server.hosts.find(':') + 1)));
  }
};

class zookeeper_behind_proxy final : private common_zookeeper, public lost_engine {
 public:
  zookeeper_behind_proxy() : lost_engine(server_port()) {}

  [[nodiscard]] std::string url() const override {
    return "zookeeper://127.0.0.1:" + std::to_string(proxy().port()) + root_ + "?layout=flat";
  }

 private:
  const std::string root_ = fresh_chroot();
};
#endif

#ifdef HOLDFAST_WITH_ETCD
struct own_etcd {
  std::unique_ptr<etcd_server> server = start_etcd();
};

class etcd_behind_proxy final : private own_etcd, public lost_engine {
 public:
  etcd_behind_proxy() : lost_engine(server->port()) {}

  [[nodiscard]] std::string url() const override {
    return "etcd://127.0.0.1:" + std::to_string(proxy().port()) + "?layout=flat";
  }
};
#endif

#ifdef HOLDFAST_WITH_MARIADB
class mariadb_behind_proxy final : public lost_engine {
 public:
  mariadb_behind_proxy() : lost_engine(shared_mariadb().port()) {}

  [[nodiscard]] std::string url() const override { return by_port(prefix_.url(), proxy().port()); }

 private:
  const borrowed_prefix prefix_;
};
#endif

template <class Engine>
way_to_lose by(std::string name) {
  return {std::move(name), [] { return std::make_unique<Engine>(); }};
}

}  // namespace

const std::vector<way_to_lose>& ways_to_lose() {
  static const std::vector<way_to_lose> all{
#ifdef HOLDFAST_WITH_REDIS
      by<redis_killed>("redis_killed"),
      by<redis_stopped>("redis_stopped"),
      by<redis_behind_proxy>("redis_cut_off"),
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
      by<postgresql_ended>("postgresql_ended"),
      by<postgresql_behind_proxy>("postgresql_cut_off"),
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      by<zookeeper_behind_proxy>("zookeeper_cut_off"),
#endif
#ifdef HOLDFAST_WITH_ETCD
      by<etcd_behind_proxy>("etcd_cut_off"),
#endif
  };
  return all;
}

const std::vector<way_to_lose>& engines_behind_proxies() {
  static const std::vector<way_to_lose> all{
#ifdef HOLDFAST_WITH_REDIS
      by<redis_behind_proxy>("redis"),
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
      by<postgresql_behind_proxy>("postgresql"),
#endif
#ifdef HOLDFAST_WITH_MARIADB
      by<mariadb_behind_proxy>("mariadb"),
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      by<zookeeper_behind_proxy>("zookeeper"),
#endif
#ifdef HOLDFAST_WITH_ETCD
      by<etcd_behind_proxy>("etcd"),
#endif
  };
  return all;
}

}  // namespace holdfast::test
