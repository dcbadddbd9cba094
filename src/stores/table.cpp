// Which scheme is which engine. An engine that was left out of the build keeps its line, so that
// its URL is answered with that, not with "no such scheme".
#include "stores/table.hpp"

#include "net/backoff.hpp"

#ifdef HOLDFAST_WITH_ETCD
#include "stores/etcd/etcd_store.hpp"
#include "stores/etcd/nghttp2.hpp"
#endif
#ifdef HOLDFAST_WITH_MARIADB
#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/libmariadb.hpp"
#endif
#include "stores/degraded/open_degraded.hpp"
#include "stores/memory/memory_store.hpp"
#ifdef HOLDFAST_WITH_POSTGRESQL
#include "stores/postgresql/engine.hpp"
#include "stores/postgresql/libpq.hpp"
#endif
#ifdef HOLDFAST_WITH_REDIS
#include "stores/redis/open_redis.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redlock.hpp"
#endif
#ifdef HOLDFAST_WITH_SQLITE
#include "stores/sqlite/sqlite_store.hpp"
#endif
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/zookeeper/zookeeper_store.hpp"
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::stores {

namespace {

using opened = result<std::shared_ptr<spi::store>>;
using opener = opened (*)(const spi::url&, const std::shared_ptr<spi::reactor>&,
                          const net::backoff_limits&);

struct engine {
  std::string_view scheme;
  opener open = nullptr;  // null: not in this build
  bool on_hosts = false;  // its URL names at least one
};

opened open_memory(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                   const net::backoff_limits& /*pauses*/) {
  return memory::open_memory(url, runtime);
}

#ifdef HOLDFAST_WITH_SQLITE
opened open_sqlite(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                   const net::backoff_limits& /*pauses*/) {
  return sqlite::open_sqlite(url, runtime);
}
#else
constexpr opener open_sqlite = nullptr;
#endif

#ifdef HOLDFAST_WITH_REDIS
opened open_redis(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                  const net::backoff_limits& pauses) {
  return redis::open_redis(url, runtime, pauses);
}
#else
constexpr opener open_redis = nullptr;
constexpr opener open_redlock = nullptr;
#endif

#ifdef HOLDFAST_WITH_POSTGRESQL
opened open_postgresql(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                       const net::backoff_limits& pauses) {
  if (auto driver = postgresql::libpq.load(); !driver) return tl::unexpected(driver.error());
  return postgresql::open_postgresql(url, runtime, pauses);
}
#else
constexpr opener open_postgresql = nullptr;
#endif

#ifdef HOLDFAST_WITH_MARIADB
opened open_mariadb(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                    const net::backoff_limits& pauses) {
  if (auto driver = mariadb::libmariadb.load(); !driver) return tl::unexpected(driver.error());
  return mariadb::open_mariadb(url, runtime, pauses);
}
#else
constexpr opener open_mariadb = nullptr;
#endif

#ifdef HOLDFAST_WITH_ZOOKEEPER
opened open_zookeeper(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                      const net::backoff_limits& pauses) {
  return zookeeper::open_zookeeper(url, runtime, pauses);
}
#else
constexpr opener open_zookeeper = nullptr;
#endif

#ifdef HOLDFAST_WITH_ETCD
opened open_etcd(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime,
                 const net::backoff_limits& pauses) {
  if (auto framing = etcd::libnghttp2.load(); !framing) return tl::unexpected(framing.error());
  return etcd::open_etcd(url, runtime, pauses);
}
#else
constexpr opener open_etcd = nullptr;
#endif

constexpr std::array engines{
    engine{"memory", open_memory},
    engine{"sqlite", open_sqlite},
    engine{"redis", open_redis, true},
    engine{"rediss", open_redis, true},
    engine{"redis+sentinel", open_redis, true},
    engine{"redis+cluster", open_redis, true},
    engine{"redlock", open_redlock, true},
    engine{"zookeeper", open_zookeeper, true},
    engine{"postgresql", open_postgresql},
    engine{"mariadb", open_mariadb},
    engine{"mysql", open_mariadb},
    engine{"etcd", open_etcd, true},
    engine{"etcds", open_etcd, true},
};

// A server that is down is never dialled without a pause, whatever the policy says.
net::backoff_limits pauses_of(const retry_policy& retry) {
  constexpr duration shortest = std::chrono::milliseconds(1);
  const duration longest = std::max(shortest, retry.limit);
  return {.first = std::clamp(retry.first, shortest, longest), .longest = longest};
}

std::string known_schemes() {
  std::string list;
  for (const engine& each : engines) {
    if (each.open == nullptr) continue;
    list += (list.empty() ? "" : ", ") + std::string(each.scheme) + ":";
  }
  return list;
}

// One for all clients of this process that use the same name for the engine.
opened open_fallback(const spi::url& url, const std::shared_ptr<spi::reactor>& runtime) {
  spi::url local;
  local.scheme = "memory";
  local.path = "stand-in for " + url.redacted();
  return memory::open_memory(local, runtime);
}

opened open_engine(const engine& engine, spi::url url, const std::shared_ptr<spi::reactor>& runtime,
                   const net::backoff_limits& pauses) {
  const auto options = degraded::take_options(url);
  if (!options) return tl::unexpected(options.error());
  auto store = engine.open(url, runtime, pauses);
  if (!store || !options->fallback) {
    return store ? degraded::wrap(*options, *std::move(store), nullptr, runtime) : std::move(store);
  }
  auto local = open_fallback(url, runtime);
  if (!local) return local;
  return degraded::wrap(*options, *std::move(store), *std::move(local), runtime);
}

}  // namespace

result<std::shared_ptr<spi::store>> open(const spi::url& url,
                                         const std::shared_ptr<spi::reactor>& runtime,
                                         const retry_policy& retry) {
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [&](const engine& each) { return each.scheme == url.scheme; });
  if (found == engines.end()) {
    return failure(errc::invalid, "URL: no such scheme; this build has " + known_schemes());
  }
  if (found->on_hosts && url.hosts.empty()) {
    return failure(errc::invalid, "URL: a host is missing; written " + url.scheme + "://HOST");
  }
  if (found->open == nullptr) {
    return failure(errc::unsupported, url.scheme + ": this build has only " + known_schemes());
  }
  return open_engine(*found, url, runtime, pauses_of(retry));
}

result<std::string> redis_library() {
#ifdef HOLDFAST_WITH_REDIS
  return redis::library_text();
#else
  return failure(errc::unsupported, "this holdfast was built without Redis");
#endif
}

}  // namespace holdfast::stores
