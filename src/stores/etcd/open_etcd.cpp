// From a URL to a store.
#include "net/time_option.hpp"
#include "stores/etcd/etcd_store.hpp"

#include <utility>

namespace holdfast::etcd {

namespace {

constexpr std::uint16_t default_port = 2379;

std::string option(const spi::url& url, const char* name) {
  const auto found = url.options.find(name);
  return found == url.options.end() ? std::string() : found->second;
}

// What follows the host's slash, as it is: "/shop" is shop/, "//shop" is /shop/.
std::string root_of(const spi::url& url) {
  std::string root = url.path;
  if (!root.empty() && root.front() == '/') root.erase(0, 1);
  if (!root.empty() && root.back() != '/') root += '/';
  return root;
}

result<std::shared_ptr<const net::tls_context>> tls_of(const spi::url& url) {
  using verification = net::tls_options::verification;
  const std::string verify = option(url, "verify");
  if (!verify.empty() && verify != "full" && verify != "none") {
    return failure(errc::invalid, "URL: verify is full or none");
  }
  net::tls_options options;
  options.verify = verify == "none" ? verification::none : verification::full;
  options.ca = option(url, "ca");
  options.cert = option(url, "cert");
  options.key = option(url, "key");
  options.sni = option(url, "sni");
  options.alpn = "h2";
  if (url.scheme != "etcds") {
    for (const char* each : {"verify", "ca", "cert", "key", "sni"}) {
      if (!option(url, each).empty()) {
        return failure(errc::invalid, std::string("URL: ") + each + " needs etcds://");
      }
    }
    return std::shared_ptr<const net::tls_context>();
  }
  return net::tls_context::make(options);
}

}  // namespace

result<std::shared_ptr<spi::store>> open_etcd(const spi::url& url,
                                              std::shared_ptr<spi::reactor> reactor,
                                              const net::backoff_limits& pauses) {
  if (auto known = spi::check_options(
          url, {"layout", "connect_timeout", "ca", "cert", "key", "sni", "verify"});
      !known) {
    return tl::unexpected(std::move(known.error()));
  }
  server_options options;
  options.backoff = pauses;
  for (const spi::endpoint& each : url.hosts) {
    options.servers.push_back({each.host, each.port == 0 ? default_port : each.port, {}});
  }
  options.root = root_of(url);
  options.user = url.user;
  options.password = url.password;
  const std::string layout = option(url, "layout");
  if (!layout.empty() && layout != "flat" && layout != "path") {
    return failure(errc::invalid, "URL: layout is flat or path");
  }
  options.layout = layout == "path" ? name_layout::path : name_layout::flat;
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  options.connect_limit = limit->value_or(options.connect_limit);
  auto tls = tls_of(url);
  if (!tls) return tl::unexpected(tls.error());
  options.tls = std::move(*tls);
  return std::shared_ptr<spi::store>(
      std::make_shared<etcd_store>(std::move(reactor), std::move(options)));
}

}  // namespace holdfast::etcd
