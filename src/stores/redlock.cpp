#ifdef HOLDFAST_WITH_REDIS

#include "stores/redlock.hpp"

#include "net/time_option.hpp"
#include "stores/quorum/quorum_store.hpp"
#include "stores/redis/open_redis.hpp"
#include "stores/redis/voter.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::stores {

namespace {

constexpr std::size_t members_at_most = 15;
constexpr std::uint16_t default_port = 6379;
// Added to the longest ttl: room for differences between the members' clocks, and for fences
// that are proposed near them.
constexpr duration clock_room = std::chrono::seconds(5);

result<void> check_hosts(const spi::url& url) {
  if (url.hosts.size() < 2) {
    return failure(errc::invalid, "URL: one member is no quorum; write redlock://HOST,HOST,HOST");
  }
  if (url.hosts.size() > members_at_most) {
    return failure(errc::invalid, "URL: more than " + std::to_string(members_at_most) + " members");
  }
  std::set<spi::endpoint> seen;
  for (spi::endpoint each : url.hosts) {
    if (each.port == 0) each.port = default_port;
    if (!seen.insert(each).second) {
      return failure(errc::invalid, "URL: " + each.host + " is listed twice");
    }
  }
  return {};
}

// The URL of its i-th host alone.
spi::url url_of(const spi::url& all, std::size_t member) {
  spi::url one = all;
  const auto tls = all.options.find("tls");
  one.scheme = tls != all.options.end() && tls->second == "yes" ? "rediss" : "redis";
  one.hosts = {all.hosts[member]};
  for (const char* own : {"longest_ttl", "answer", "durable", "tls"}) one.options.erase(own);
  return one;
}

}  // namespace

result<std::shared_ptr<spi::store>> open_redlock(const spi::url& url,
                                                 const std::shared_ptr<spi::reactor>& runtime,
                                                 const net::backoff_limits& pauses) {
  if (auto known =
          spi::check_options(url, {"dialect", "longest_ttl", "answer", "durable", "tls",
                                   "connect_timeout", "ca", "cert", "key", "sni", "verify"});
      !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (auto fine = check_hosts(url); !fine) return tl::unexpected(std::move(fine.error()));
  quorum::settings settings;
  const auto longest = net::time_option(url, "longest_ttl", std::chrono::seconds(60));
  if (!longest) return tl::unexpected(longest.error());
  const auto answer = net::time_option(url, "answer", settings.limit.longest_answer);
  if (!answer) return tl::unexpected(answer.error());
  settings.longest_ttl = *longest;
  settings.limit.longest_answer = *answer;
  settings.limit.shortest_answer = std::min(settings.limit.shortest_answer, *answer);
  const auto durable = url.options.find("durable");
  const redis::voting how{.longest_ttl = *longest + *longest / 50 + clock_room,
                          .keeps = durable != url.options.end() && durable->second == "yes"};
  const auto dialect = url.options.find("dialect");
  const bool simple = dialect != url.options.end() && dialect->second == "simple";
  if (dialect != url.options.end() && !simple && dialect->second != "native") {
    return failure(errc::invalid, "URL: dialect is native or simple; only these have a quorum");
  }
  if (simple) settings.engine += ", dialect=simple";
  std::vector<quorum::member> members;
  for (std::size_t i = 0; i < url.hosts.size(); ++i) {
    auto opened = simple ? redis::open_redis(url_of(url, i), runtime, pauses)
                         : redis::open_voter(url_of(url, i), how, runtime, pauses);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    const std::uint16_t port = url.hosts[i].port == 0 ? default_port : url.hosts[i].port;
    members.push_back({url.hosts[i].host + ":" + std::to_string(port), *std::move(opened)});
  }
  return std::make_shared<quorum::quorum_store>(runtime, std::move(members), settings);
}

}  // namespace holdfast::stores

#endif
