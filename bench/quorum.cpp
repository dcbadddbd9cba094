// What a quorum of five costs, and what one slow member of it costs: two clients of the same five
// servers take turns, one of them with a member whose answers come a second late. Only ratios
// matter.
#include "support/fault_proxy.hpp"
#include "support/redlock_servers.hpp"

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr int pairs = 2'000;
constexpr std::size_t members = 5;

// One client's own connections to every member.
struct view {
  explicit view(test::redlock_servers& servers) {
    std::string url = "redlock://";
    for (std::size_t i = 0; i < members; ++i) {
      proxies.push_back(std::make_unique<test::fault_proxy>(servers[i].port()));
      url += (i == 0 ? "" : ",") + ("127.0.0.1:" + std::to_string(proxies[i]->port()));
    }
    auto opened = client::open(url + "?longest_ttl=30s");
    if (!opened) std::abort();
    user = std::make_unique<client>(*std::move(opened));
  }

  std::vector<std::unique_ptr<test::fault_proxy>> proxies;
  std::unique_ptr<client> user;
};

struct figures {
  std::vector<double> acquire;
  std::vector<double> release;
};

double at(std::vector<double> all, double part) {
  std::ranges::sort(all);
  return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
}

double microseconds(time_point from, time_point to) {
  return static_cast<double>((to - from).count()) / 1e3;
}

void pair(mutex& lock, figures& into) {
  const time_point start = clock::now();
  auto lease = lock.acquire({.wait = 10s});
  const time_point granted = clock::now();
  if (!lease) std::abort();
  static_cast<void>(lease->release());
  into.acquire.push_back(microseconds(start, granted));
  into.release.push_back(microseconds(granted, clock::now()));
}

void show(const char* what, const figures& seen) {
  std::printf("%-28s acquire p50 %7.0f us, p99 %7.0f us; release p50 %7.0f us\n", what,
              at(seen.acquire, 0.5), at(seen.acquire, 0.99), at(seen.release, 0.5));
}

int run() {
  test::redlock_servers servers(members);
  const view even(servers);
  const view lame(servers);
  mutex here(*even.user, "even", {.ttl = 20s});
  mutex there(*lame.user, "lame", {.ttl = 20s});
  figures warm;
  for (int i = 0; i < 100; ++i) {
    pair(here, warm);
    pair(there, warm);
  }
  lame.proxies[2]->delay(test::fault_proxy::way::to_client, 1000ms);
  figures all_well;
  figures one_slow;
  for (int i = 0; i < pairs; ++i) {
    pair(here, all_well);
    pair(there, one_slow);
  }
  show("five members", all_well);
  show("one of them 1 s late", one_slow);
  std::printf("ratio of the p50 of acquire: %.3f\n",
              at(one_slow.acquire, 0.5) / at(all_well.acquire, 0.5));
  return 0;
}

}  // namespace
}  // namespace holdfast::bench

int main() { return holdfast::bench::run(); }
