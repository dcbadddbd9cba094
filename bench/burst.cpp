// What happens to many locks that one client requests at once: how many are granted, how many are
// refused, whether a lease is lost meanwhile, and how long it takes.
//
//   bench_burst                       every engine, every size: the table of docs/performance.md
//   bench_burst URL NAMES TTL_MS      one burst on a server that runs already
//   bench_burst ENGINE [NAMES TTL_MS [readers]]
//                                     memory, embedded, redis, postgresql, mariadb, zookeeper, etcd;
//                                     readers: so many of one name
#include "support/etcd_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgresql_server.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_folder.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using holdfast::duration;
using namespace std::chrono_literals;

constexpr duration wait_limit = 60s;

struct burst {
  std::string url{};
  std::size_t many = 0;
  duration ttl{};
  bool readers = false;  // of one name; else so many names
};

// The answers so far. Thread-safe.
struct tally {
  std::mutex mutex;
  std::vector<holdfast::lease> held;  // guarded by mutex
  std::size_t overloaded = 0;         // guarded by mutex
  std::size_t failed = 0;             // guarded by mutex; any other refusal
  std::string why;                    // guarded by mutex; the last of those
  std::atomic<std::size_t> answers{0};

  void take(holdfast::result<holdfast::lease> answer) {
    {
      const std::lock_guard lock(mutex);
      if (answer) {
        held.push_back(*std::move(answer));
      } else if (answer.error() == holdfast::errc::overloaded) {
        ++overloaded;
      } else {
        ++failed;
        why = answer.error().message();
      }
    }
    answers.fetch_add(1);
  }
};

void run(const std::string& engine, const burst& what) {
  auto opened = holdfast::client::open(what.url);
  if (!opened) throw std::runtime_error(opened.error().message());
  const auto result = std::make_shared<tally>();
  const auto begin = holdfast::clock::now();
  const auto take = [result](holdfast::result<holdfast::lease> answer) {
    result->take(std::move(answer));
  };
  for (std::size_t i = 0; i < what.many; ++i) {
    if (what.readers) {
      holdfast::shared_mutex(*opened, "burst", {.ttl = what.ttl})
          .async_acquire_shared({.wait = wait_limit}, {}, take);
    } else {
      holdfast::mutex(*opened, "burst/" + std::to_string(i), {.ttl = what.ttl})
          .async_acquire({.wait = wait_limit}, {}, take);
    }
  }
  while (result->answers.load() < what.many) std::this_thread::sleep_for(10ms);
  const double took = std::chrono::duration<double>(holdfast::clock::now() - begin).count();
  // The lease that was granted last is renewed at least three times.
  std::this_thread::sleep_for(what.ttl + what.ttl / 4);
  const std::lock_guard lock(result->mutex);
  const auto lost = std::count_if(result->held.begin(), result->held.end(),
                                  [](const holdfast::lease& each) { return !each.valid(); });
  std::printf("| %s | %zu %s | %lld s | %zu | %zu | %zu | %lld | %.1f s |%s\n", engine.c_str(),
              what.many, what.readers ? "readers" : "names", static_cast<long long>(what.ttl / 1s),
              result->held.size(), result->overloaded, result->failed, static_cast<long long>(lost),
              took, result->why.c_str());
  std::fflush(stdout);
}

// A new server for every burst: what the previous one left behind does not slow the next.
void run_on(const std::string& engine, burst what) {
  using namespace holdfast::test;
  const auto at = [&](std::string url) {
    what.url = std::move(url);
    run(engine.substr(0, engine.find(':')), what);
  };
  if (engine == "memory") {
    at("memory:burst");
  } else if (engine == "embedded") {
    const temporary_folder folder;
    at("sqlite:" + (folder.path() / "locks.db").string());
  } else if (engine == "redis") {
    const redis_server server;
    at("redis://127.0.0.1:" + std::to_string(server.port()));
  } else if (engine == "postgresql") {
    const postgresql_server server(postgresql_options{.durable = true});
    at(server.url("burst"));
  } else if (engine == "mariadb") {
    const mariadb_server server(mariadb_options{.durable = true});
    at(server.url("burst_"));
  } else if (engine == "zookeeper") {
    const auto server = start_zookeeper();
    at("zookeeper://" + server->host());
  } else if (engine == "etcd") {
    const auto server = start_etcd();
    at("etcd://" + server->host());
  } else {
    at(engine);
  }
}

void run_all(const std::string& engine) {
  for (const duration ttl : {duration(3s), duration(30s)}) {
    for (const std::size_t names : {3'000U, 8'000U, 40'000U}) {
      run_on(engine, {.many = names, .ttl = ttl});
    }
  }
  run_on(engine, {.many = 6'000, .ttl = 3s, .readers = true});
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count >= 4) {
      const duration ttl = std::chrono::milliseconds(std::atol(words[3]));
      const bool readers = count > 4 && std::string(words[4]) == "readers";
      run_on(words[1],
             {.many = std::strtoul(words[2], nullptr, 10), .ttl = ttl, .readers = readers});
    } else if (count == 2) {
      run_all(words[1]);
    } else {
      for (const char* each :
           {"memory", "embedded", "redis", "postgresql", "mariadb", "zookeeper", "etcd"}) {
        run_all(each);
      }
    }
    return 0;
  } catch (const std::exception& why) {
    std::fprintf(stderr, "bench_burst: %s\n", why.what());
    return 1;
  }
}
