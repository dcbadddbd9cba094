#include "contract/stores.hpp"

#include "support/etcd_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgresql_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/redlock_servers.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {

namespace {

// A name that only this test uses: it must find nothing of another test. A repetition needs a
// process of its own.
fresh_engine memory_engine() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "." + test->name();
  for (char& c : name) {
    if (c == '/') c = '.';
  }
  return {"memory:" + name, nullptr};
}

#ifdef HOLDFAST_WITH_SQLITE
fresh_engine sqlite_engine() {
  auto folder = std::make_shared<temporary_folder>();
  return {"sqlite:" + (folder->path() / "locks.db").string(), folder};
}
#endif

#ifdef HOLDFAST_WITH_POSTGRESQL
fresh_engine postgresql_engine() {
  auto schema = std::make_shared<borrowed_schema>();
  return {schema->url("&connections=1"), schema};
}

fresh_engine postgresql_session_engine() {
  auto schema = std::make_shared<borrowed_schema>();
  return {schema->url("&strategy=session"), schema};
}

fresh_engine postgresql_row_engine() {
  auto schema = std::make_shared<borrowed_schema>();
  return {schema->url("&strategy=row&connections=40"), schema};
}
#endif

#ifdef HOLDFAST_WITH_MARIADB
fresh_engine mariadb_engine() {
  auto prefix = std::make_shared<borrowed_prefix>();
  return {prefix->url("&connections=1"), prefix};
}

fresh_engine mariadb_session_engine() {
  auto prefix = std::make_shared<borrowed_prefix>();
  return {prefix->url("&strategy=session"), prefix};
}

fresh_engine mariadb_row_engine() {
  auto prefix = std::make_shared<borrowed_prefix>();
  return {prefix->url("&strategy=row&connections=40"), prefix};
}
#endif

#ifdef HOLDFAST_WITH_REDIS
// One server for all tests of the program, emptied for each.
std::shared_ptr<const redis_server> emptied_redis() {
  static const auto server = std::make_shared<const redis_server>();
  server->tell({"FLUSHALL"});
  return server;
}

fresh_engine redis_engine() {
  const auto server = emptied_redis();
  return {"redis://127.0.0.1:" + std::to_string(server->port()), server};
}

// The same rules, called as scripts, as on Redis 6.2.
fresh_engine redis_scripts_engine() {
  fresh_engine made = redis_engine();
  made.url += "?functions=off";
  return made;
}

fresh_engine redis_dialect(const std::string& dialect) {
  const auto server = emptied_redis();
  return {"redis://127.0.0.1:" + std::to_string(server->port()) + "?dialect=" + dialect, server};
}

fresh_engine redis_simple_engine() { return redis_dialect("simple"); }
fresh_engine redis_redisson_engine() { return redis_dialect("redisson"); }

fresh_engine redis_sentinel_engine() {
  static const auto servers = std::make_shared<const redis_sentinels>();
  servers->master().tell({"FLUSHALL"});
  return {servers->url(), servers};
}

fresh_engine redis_cluster_engine() {
  static const auto servers = std::make_shared<const redis_cluster>();
  servers->flush();
  return {servers->url(), servers};
}

fresh_engine redlock_engine() {
  static const auto servers = std::make_shared<redlock_servers>(3);
  servers->flush();
  return {servers->url("longest_ttl=86400s"), servers};
}
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
fresh_engine zookeeper_engine() {
  const shared_zookeeper server = use_shared_zookeeper();
  return {"zookeeper://" + server.hosts + fresh_chroot(), server.keep};
}

fresh_engine zookeeper_ensemble_engine() {
  static const auto servers = std::make_shared<const zookeeper_ensemble>();
  return {"zookeeper://" + servers->hosts() + fresh_chroot(), servers};
}
#endif

#ifdef HOLDFAST_WITH_ETCD
fresh_engine etcd_engine() {
  static const std::shared_ptr<const etcd_server> server = start_etcd();
  return {"etcd://" + server->host() + fresh_etcd_prefix(), server};
}

fresh_engine etcd_cluster_engine() {
  static const auto servers = std::make_shared<const etcd_cluster>();
  return {"etcd://" + servers->hosts() + fresh_etcd_prefix(), servers};
}
#endif

}  // namespace

const std::vector<store_setup>& store_setups() {
  static const std::vector<store_setup> all{
      {"memory", memory_engine, needs::roles},
#ifdef HOLDFAST_WITH_SQLITE
      {"sqlite", sqlite_engine},
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
      {"postgresql", postgresql_engine},
      {"postgresql_session", postgresql_session_engine},
      {"postgresql_row", postgresql_row_engine},
#endif
#ifdef HOLDFAST_WITH_MARIADB
      {"mariadb", mariadb_engine},
      {"mariadb_session", mariadb_session_engine},
      {"mariadb_row", mariadb_row_engine},
#endif
#ifdef HOLDFAST_WITH_REDIS
      {"redis", redis_engine, needs::roles},
      {"redis_scripts", redis_scripts_engine, needs::mutex},
      {"redis_simple", redis_simple_engine},
      {"redis_redisson", redis_redisson_engine, needs::roles},
      {"redis_sentinel", redis_sentinel_engine, needs::mutex},
      {"redis_cluster", redis_cluster_engine, needs::mutex},
      {"redlock", redlock_engine},
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
      {"zookeeper", zookeeper_engine, needs::roles},
      {"zookeeper_ensemble", zookeeper_ensemble_engine, needs::mutex},
#endif
#ifdef HOLDFAST_WITH_ETCD
      {"etcd", etcd_engine},
      {"etcd_cluster", etcd_cluster_engine, needs::mutex},
#endif
  };
  return all;
}

}  // namespace holdfast::test
