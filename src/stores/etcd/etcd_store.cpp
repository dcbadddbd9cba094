// Leases, entries and their keys.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

spi::caps make_caps() {
  spi::caps caps;
  caps.engine = "etcd";
  caps.supports_detach = true;
  // Handing a claim on puts its key again, and Go's RWMutex orders by the last change of a key.
  caps.supports_shared_detach = false;
  return caps;
}

}  // namespace

etcd_store::etcd_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : queued_store(std::move(reactor), make_caps()),
      options_(std::make_shared<const server_options>(std::move(options))),
      way_(channel::make(net_, options_)),
      watches_(std::make_shared<watch_hub>(net_.reactor, channel::make(net_, options_),
                                           options_->backoff)),
      blockers_(std::make_shared<blocker_watches>(net_.reactor, watches_)) {}

etcd_store::~etcd_store() { close(); }

// --- leases --------------------------------------------------------------------------------------

std::shared_ptr<lease_keeper> etcd_store::lease_for(duration wanted) {
  const lock_guard lock(mutex_);
  if (const auto found = leases_.find(wanted); found != leases_.end()) return found->second;
  if (leases_.size() >= lease_limit) {
    const auto unused = std::find_if(leases_.begin(), leases_.end(),
                                     [](const auto& each) { return !each.second->held(); });
    const auto longer = leases_.lower_bound(wanted);
    if (unused != leases_.end()) {
      leases_.erase(unused);  // it ends by itself
    } else if (longer != leases_.end()) {
      return longer->second;
    }
  }
  auto made = std::make_shared<lease_keeper>(net_.reactor, way_, wanted, weak_from_this());
  leases_.emplace(wanted, made);
  return made;
}

void etcd_store::lease_ended(std::int64_t id) { life_ended(id, "the etcd lease has ended"); }

// --- claims --------------------------------------------------------------------------------------

// Called with the mutex held. Its watches are removed by settled().
void etcd_store::forgotten(const entry& which) {
  const auto reused = reused_keys_.find(which.key);
  if (reused != reused_keys_.end() && reused->second == which.claim->id) reused_keys_.erase(reused);
}

// Called with the mutex held.
void etcd_store::choose_key(entry& which) {
  which.id = spi::to_hex(which.claim->id);
  // Other clients show a candidate's value as it is: there is no room to say whose the key is now.
  const bool reuses = which.claim->role != spi::role::leader;
  const auto spare = reuses ? spare_keys_.take(claim_key(which.prefix, which.kind, {}))
                            : std::optional<std::string>();
  if (spare) which.id = *spare;
  which.key = claim_key(which.prefix, which.kind, which.id);
  if (spare) reused_keys_.insert_or_assign(which.key, which.claim->id);
}

// Called with the mutex held, when the key was removed. What a pending request does to this key
// must not happen to another claim.
void etcd_store::spare(const entry& which) {
  if (which.late || which.adopted || which.claim->role == spi::role::leader) return;
  spare_keys_.add(claim_key(which.prefix, which.kind, {}), which.id);
}

entry_ptr etcd_store::new_entry(spi::claim_ptr claim) {
  auto made = std::make_shared<entry>();
  made->life = lease_for(lease_time(*claim));
  made->prefix = prefix_of(*options_, claim->resource);
  made->kind = kind_of(*claim);
  made->mode = claim->mode;
  made->claim = std::move(claim);
  return made;
}

entry_ptr etcd_store::make_entry(spi::claim_ptr claim) {
  entry_ptr made = new_entry(std::move(claim));
  const lock_guard lock(mutex_);
  choose_key(*made);
  return made;
}

void etcd_store::close() noexcept {
  if (guard_.forked()) return;
  if (closed_.exchange(true)) return;
  std::vector<call> farewell;
  {
    const lock_guard lock(mutex_);
    for (const auto& [wanted, each] : leases_) {
      if (each->id() == 0 || runs_out(each)) continue;
      farewell.push_back(lease_call(method::lease_revoke, each->id()));
    }
  }
  stop_ticking();
  blockers_->close();
  watches_->close();
  way_->close(farewell);
  drop_entries();
}

// From a URL to a store.

namespace {

constexpr std::uint16_t default_port = 2379;

// What follows the host's slash, as it is: "/shop" is shop/, "//shop" is /shop/.
std::string root_of(const spi::url& url) {
  std::string root = url.path;
  if (!root.empty() && root.front() == '/') root.erase(0, 1);
  if (!root.empty() && root.back() != '/') root += '/';
  return root;
}

result<std::shared_ptr<const net::tls_context>> tls_of(const spi::url& url) {
  auto options = stores::read_tls(url);
  if (!options) return tl::unexpected(options.error());
  options->alpn = "h2";
  if (url.scheme == "etcds") return net::tls_context::make(*options);
  for (const char* each : {"verify", "ca", "cert", "key", "sni"}) {
    if (stores::url_option(url, each).empty()) continue;
    return failure(errc::invalid, std::string("URL: ") + each + " needs etcds://");
  }
  return std::shared_ptr<const net::tls_context>();
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
  const auto known = stores::read_cluster(url, default_port, pauses, options);
  if (!known) return tl::unexpected(known.error());
  options.root = root_of(url);
  const auto layout =
      stores::choice(url, "layout", name_layout::flat, "flat", name_layout::path, "path");
  if (!layout) return tl::unexpected(layout.error());
  options.layout = *layout;
  auto tls = tls_of(url);
  if (!tls) return tl::unexpected(tls.error());
  options.tls = std::move(*tls);
  return std::shared_ptr<spi::store>(
      std::make_shared<etcd_store>(std::move(reactor), std::move(options)));
}

}  // namespace holdfast::etcd
