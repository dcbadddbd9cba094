// What the URLs of ZooKeeper and etcd have in common: which servers, as whom, and by which TLS.
#pragma once

#include "net/backoff.hpp"
#include "net/target.hpp"
#include "net/time_option.hpp"
#include "net/tls_context.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/url.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::stores {

struct cluster_options {
  std::vector<net::target> servers;
  std::shared_ptr<const net::tls_context> tls;  // null: none
  std::string root;                             // everything is below it
  std::string user;
  spi::secret password;
  duration connect_limit = std::chrono::seconds(5);  // one server, from resolving to its greeting
  net::backoff_limits backoff;
};

// Empty if the URL does not have it.
inline std::string url_option(const spi::url& url, const char* name) {
  const auto found = url.options.find(name);
  return found == url.options.end() ? std::string() : found->second;
}

// One of two words; `otherwise` if the option is missing.
template <class Value>
result<Value> choice(const spi::url& url, const char* name, Value otherwise,
                     const char* default_word, Value meaning, const char* word) {
  const std::string text = url_option(url, name);
  if (text.empty() || text == default_word) return otherwise;
  if (text == word) return meaning;
  return failure(errc::invalid,
                 std::string("URL: ") + name + " is " + default_word + " or " + word);
}

inline result<net::tls_options> read_tls(const spi::url& url) {
  using verification = net::tls_options::verification;
  const auto verify = choice(url, "verify", verification::full, "full", verification::none, "none");
  if (!verify) return tl::unexpected(verify.error());
  net::tls_options options;
  options.verify = *verify;
  options.ca = url_option(url, "ca");
  options.cert = url_option(url, "cert");
  options.key = url_option(url, "key");
  options.sni = url_option(url, "sni");
  return options;
}

// All but the root and TLS.
inline result<void> read_cluster(const spi::url& url, std::uint16_t usual_port,
                                 const net::backoff_limits& pauses, cluster_options& into) {
  for (const spi::endpoint& each : url.hosts) {
    into.servers.push_back({each.host, each.port == 0 ? usual_port : each.port, {}});
  }
  into.user = url.user;
  into.password = url.password;
  into.backoff = pauses;
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  into.connect_limit = limit->value_or(into.connect_limit);
  return {};
}

}  // namespace holdfast::stores
