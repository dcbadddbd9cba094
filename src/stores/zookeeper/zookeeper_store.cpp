// Sessions, entries and renewals.
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::zookeeper {

namespace {

// Watches do not get lost; if one does, this is the bound.
constexpr duration look_again_after = std::chrono::seconds(10);
constexpr duration default_session = std::chrono::seconds(30);

spi::caps make_caps() {
  spi::caps caps;
  caps.engine = "zookeeper";
  return caps;
}

claim_kind kind_of(const spi::claim& claim, election_layout elections) {
  if (claim.mode == spi::mode::permit) return claim_kind::lock;  // in the folder of locks
  if (claim.mode == spi::mode::shared) return claim_kind::reader;
  switch (claim.role) {
    case spi::role::lock:
      return claim_kind::lock;
    case spi::role::writer:
      return claim_kind::writer;
    case spi::role::leader:
      return elections == election_layout::selector ? claim_kind::lock : claim_kind::leader;
  }
  return claim_kind::lock;
}

// The session outlives the lease by its lock delay, and by the age of a proof where nothing renews
// it. The margin for clocks applies to all of it: with a long delay it could exceed a short ttl.
duration session_time(const spi::claim& claim) {
  return (claim.renewed ? claim.ttl : claim.ttl * 2) + claim.lock_delay + claim.lock_delay / 50;
}

}  // namespace

zookeeper_store::zookeeper_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : queued_store(std::move(reactor), make_caps()),
      options_(std::make_shared<const server_options>(std::move(options))) {}

zookeeper_store::~zookeeper_store() { close(); }

// --- sessions ------------------------------------------------------------------------------------

std::shared_ptr<session> zookeeper_store::session_for(duration wanted) {
  std::shared_ptr<session> idle;
  const lock_guard lock(mutex_);
  if (const auto found = sessions_.find(wanted); found != sessions_.end()) return found->second;
  if (sessions_.size() >= session_limit) {
    end_idle_watches();
    // A claim, a watch or a request that is under way refers to its session.
    const auto unused = std::find_if(sessions_.begin(), sessions_.end(),
                                     [](const auto& each) { return each.second.use_count() == 1; });
    if (unused == sessions_.end()) {
      const auto longer = sessions_.lower_bound(wanted);
      return longer != sessions_.end() ? longer->second : std::prev(sessions_.end())->second;
    }
    idle = std::move(unused->second);
    sessions_.erase(unused);
    net_.reactor->post([idle] { idle->close(); });
  }
  auto made = session::make(net_, options_, wanted, weak_from_this());
  sessions_.emplace(wanted, made);
  return made;
}

std::shared_ptr<session> zookeeper_store::any_session() {
  {
    const lock_guard lock(mutex_);
    if (!sessions_.empty()) return std::prev(sessions_.end())->second;
  }
  return session_for(default_session);
}

void zookeeper_store::session_ended(std::int64_t id) {
  life_ended(id, "the ZooKeeper session has expired");
}

// --- claims --------------------------------------------------------------------------------------

// Returns the previous phase. Called with the mutex held.
entry::phase zookeeper_store::pass_to(entry& which, entry::phase next) {
  const auto in_line = [](entry::phase one) {
    return one == entry::phase::waiting || one == entry::phase::held;
  };
  const entry::phase before = std::exchange(which.where, next);
  if (in_line(next) == in_line(before)) return before;
  std::size_t& many = in_line_[which.parent];
  many = in_line(next) ? many + 1 : many - 1;
  if (many == 0) in_line_.erase(which.parent);
  return before;
}

// Called with the mutex held.
void zookeeper_store::forgotten(entry& which) {
  if (which.watch) which.life->unwatch(which.watched_by, which.watched, which.watch);
}

entry_ptr zookeeper_store::make_entry(spi::claim_ptr claim) {
  auto made = std::make_shared<entry>();
  made->life = session_for(session_time(*claim));
  made->path = path_of(*options_, claim->resource);
  made->kind = kind_of(*claim, options_->election);
  // kazoo's semaphore uses other nodes than Curator's; ours is Curator's.
  made->naming = claim->mode == spi::mode::permit ? node_naming::curator : options_->naming;
  made->parent = made->path;
  if (claim->mode == spi::mode::permit) made->parent += "/" + std::string(locks_folder);
  made->claim = std::move(claim);
  return made;
}

void zookeeper_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                            spi::completion<std::vector<spi::renewal>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  const time_point at = now();
  std::vector<spi::renewal> answers;
  std::vector<entry_ptr> stale;
  {
    const lock_guard lock(mutex_);
    for (const spi::claim_ptr& each : claims) {
      const auto found = entries_.find(each->id);
      if (found == entries_.end()) {
        spi::renewal lost;
        lost.state = spi::hold_state::lost;
        lost.at = stores::server_time_of(at);
        answers.push_back(lost);
        continue;
      }
      entry& which = *found->second;
      const session& life = *which.life;
      const bool waits = which.where == entry::phase::waiting;
      const bool proven = waits ? which.armed && life.open(which.owner)
                                : grant_of(which, at).ttl > life.timeout() / 4;
      answers.push_back(renewal_of(which, at, proven));
      if (!waits || !proven || at - which.looked_at <= look_again_after) continue;
      which.until = context;
      which.looked_at = at;
      stale.push_back(found->second);
    }
  }
  for (const entry_ptr& each : stale) kick(each);
  done(std::move(answers));
}

void zookeeper_store::close() noexcept {
  if (guard_.forked()) return;
  if (closed_.exchange(true)) return;
  std::vector<std::pair<std::shared_ptr<session>, session::ends>> sessions;
  {
    const lock_guard lock(mutex_);
    for (const auto& [wanted, each] : sessions_) {
      sessions.emplace_back(each, runs_out(each) ? session::ends::in_time : session::ends::now);
    }
  }
  stop_ticking();
  for (const auto& [each, when] : sessions) each->close(when);
  drop_entries();
}

// From a URL to a store.

namespace {

constexpr std::uint16_t default_port = 2181;

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
  const auto wanted = stores::choice(url, "tls", false, "no", true, "yes");
  if (!wanted) return tl::unexpected(wanted.error());
  const auto options = stores::read_tls(url);
  if (!options) return tl::unexpected(options.error());
  if (!*wanted) return std::shared_ptr<const net::tls_context>();
  return net::tls_context::make(*options);
}

result<duration> tick_of(const spi::url& url) {
  const std::string text = stores::url_option(url, "tick");
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
  const auto known = stores::read_cluster(url, default_port, pauses, options);
  if (!known) return tl::unexpected(known.error());
  auto root = root_of(url);
  if (!root) return tl::unexpected(root.error());
  options.root = std::move(*root);
  const auto acl =
      stores::choice(url, "acl", openness::everybody, "open", openness::creator, "creator");
  if (!acl) return tl::unexpected(acl.error());
  if (*acl == openness::creator && url.user.empty()) {
    return failure(errc::invalid, "URL: acl=creator needs a user and a password");
  }
  options.acl = *acl;
  const auto layout =
      stores::choice(url, "layout", name_layout::flat, "flat", name_layout::path, "path");
  if (!layout) return tl::unexpected(layout.error());
  options.layout = *layout;
  const auto naming =
      stores::choice(url, "peer", node_naming::curator, "curator", node_naming::kazoo, "kazoo");
  if (!naming) return tl::unexpected(naming.error());
  options.naming = *naming;
  const auto election = stores::choice(url, "election", election_layout::latch, "latch",
                                       election_layout::selector, "selector");
  if (!election) return tl::unexpected(election.error());
  options.election = *election;
  auto tick = tick_of(url);
  if (!tick) return tl::unexpected(tick.error());
  options.tick = *tick;
  auto tls = tls_of(url);
  if (!tls) return tl::unexpected(tls.error());
  options.tls = std::move(*tls);
  return std::shared_ptr<spi::store>(
      std::make_shared<zookeeper_store>(std::move(reactor), std::move(options)));
}

}  // namespace holdfast::zookeeper
