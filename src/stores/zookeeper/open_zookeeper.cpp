// From a URL to a store.
#include "net/time_option.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <charconv>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr std::uint16_t default_port = 2181;

std::string option(const spi::url& url, const char* name) {
  const auto found = url.options.find(name);
  return found == url.options.end() ? std::string() : found->second;
}

// One of two words; `otherwise` where the option is not there.
template <class Value>
result<Value> choice(const spi::url& url, const char* name, Value otherwise, const char* word,
                     Value meaning, const char* default_word) {
  const std::string text = option(url, name);
  if (text.empty() || text == default_word) return otherwise;
  if (text == word) return meaning;
  return failure(errc::invalid,
                 std::string("URL: ") + name + " is " + default_word + " or " + word);
}

result<std::string> root_of(const spi::url& url) {
  std::string root = url.path;
  while (!root.empty() && root.back() == '/') root.pop_back();
  if (root.find("//") != std::string::npos) {
    return failure(errc::invalid, "URL: the path has an empty part");
  }
  for (std::size_t at = 0; at < root.size();) {
    const std::size_t end = std::min(root.find('/', at + 1), root.size());
    const std::string part = root.substr(at + 1, end - at - 1);
    if (part == "." || part == ".." || (at == 0 && part == "zookeeper")) {
      return failure(errc::invalid, "URL: the path has a part that ZooKeeper keeps for itself");
    }
    at = end;
  }
  return root;
}

result<std::shared_ptr<const net::tls_context>> tls_of(const spi::url& url) {
  const auto wanted = choice(url, "tls", false, "yes", true, "no");
  if (!wanted) return tl::unexpected(wanted.error());
  using verification = net::tls_options::verification;
  const auto verify = choice(url, "verify", verification::full, "none", verification::none, "full");
  if (!verify) return tl::unexpected(verify.error());
  net::tls_options options;
  options.verify = *verify;
  options.ca = option(url, "ca");
  options.cert = option(url, "cert");
  options.key = option(url, "key");
  options.sni = option(url, "sni");
  if (!*wanted) return std::shared_ptr<const net::tls_context>();
  return net::tls_context::make(options);
}

result<duration> tick_of(const spi::url& url) {
  const std::string text = option(url, "tick");
  if (text.empty()) return duration{0};
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value < 1 || value > 60'000) {
    return failure(errc::invalid, "URL: tick is the servers' tickTime in ms, 1 to 60000");
  }
  return std::chrono::milliseconds(value);
}

}  // namespace

result<std::shared_ptr<spi::store>> open_zookeeper(const spi::url& url,
                                                   std::shared_ptr<spi::reactor> reactor,
                                                   const net::backoff_limits& pauses) {
  if (auto known =
          spi::check_options(url, {"acl", "layout", "peer", "election", "tick", "connect_timeout",
                                   "tls", "ca", "cert", "key", "sni", "verify"});
      !known) {
    return tl::unexpected(std::move(known.error()));
  }
  server_options options;
  options.backoff = pauses;
  for (const spi::endpoint& each : url.hosts) {
    options.servers.push_back({each.host, each.port == 0 ? default_port : each.port, {}});
  }
  auto root = root_of(url);
  if (!root) return tl::unexpected(root.error());
  options.root = std::move(*root);
  options.user = url.user;
  options.password = url.password;
  const auto acl = choice(url, "acl", openness::everybody, "creator", openness::creator, "open");
  if (!acl) return tl::unexpected(acl.error());
  if (*acl == openness::creator && url.user.empty()) {
    return failure(errc::invalid, "URL: acl=creator needs a user and a password");
  }
  options.acl = *acl;
  const auto layout = choice(url, "layout", name_layout::flat, "path", name_layout::path, "flat");
  if (!layout) return tl::unexpected(layout.error());
  options.layout = *layout;
  const auto naming =
      choice(url, "peer", node_naming::curator, "kazoo", node_naming::kazoo, "curator");
  if (!naming) return tl::unexpected(naming.error());
  options.naming = *naming;
  const auto election = choice(url, "election", election_layout::latch, "selector",
                               election_layout::selector, "latch");
  if (!election) return tl::unexpected(election.error());
  options.election = *election;
  auto tick = tick_of(url);
  if (!tick) return tl::unexpected(tick.error());
  options.tick = *tick;
  const auto limit = net::connect_timeout(url);
  if (!limit) return tl::unexpected(limit.error());
  options.connect_limit = limit->value_or(options.connect_limit);
  auto tls = tls_of(url);
  if (!tls) return tl::unexpected(tls.error());
  options.tls = std::move(*tls);
  return std::shared_ptr<spi::store>(
      std::make_shared<zookeeper_store>(std::move(reactor), std::move(options)));
}

}  // namespace holdfast::zookeeper
