// The verbs of claims, sessions, and what time does to claims that nobody renews.
#include "stores/zookeeper/zookeeper_store.hpp"

#include "stores/zookeeper/fence.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

// A hold that lasts longer is watched: for force, for revocation, for those who wait behind it.
constexpr duration short_hold = std::chrono::milliseconds(20);
constexpr duration quick_tick = std::chrono::milliseconds(20);
constexpr duration slow_tick = std::chrono::milliseconds(100);
// Watches do not get lost; should one, this is the bound.
constexpr duration look_again_after = std::chrono::seconds(10);
constexpr duration default_session = std::chrono::seconds(30);
constexpr duration waiter_lease = std::chrono::seconds(30);

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

// The session outlives the lease by what it must: its lock delay, and the age of a proof where
// nothing renews it. The margin for clocks is taken of all of it: of a long delay it would be more than
// a short ttl.
duration session_time(const spi::claim& claim) {
  return (claim.renewed ? claim.ttl : claim.ttl * 2) + claim.lock_delay + claim.lock_delay / 50;
}

spi::server_time server_time_of(time_point at) { return spi::server_time(at.time_since_epoch()); }

}  // namespace

zookeeper_store::zookeeper_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : net_(net::make_network(std::move(reactor))),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(make_caps()) {}

zookeeper_store::~zookeeper_store() { close(); }

// --- sessions ------------------------------------------------------------------------------------

std::shared_ptr<session> zookeeper_store::session_for(duration wanted) {
  std::shared_ptr<session> idle;
  const lock_guard lock(mutex_);
  if (const auto found = sessions_.find(wanted); found != sessions_.end()) return found->second;
  if (sessions_.size() >= session_limit) {
    const auto unused = std::find_if(sessions_.begin(), sessions_.end(),
                                     [](const auto& each) { return !each.second->held(); });
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
  std::vector<entry_ptr> those;
  {
    const lock_guard lock(mutex_);
    for (const auto& [claim, each] : entries_) {
      if (each->owner == id) those.push_back(each);
    }
  }
  for (const entry_ptr& each : those) gone(each, {errc::lost, "the ZooKeeper session has expired"});
}

// --- claims --------------------------------------------------------------------------------------

entry_ptr zookeeper_store::find(const spi::claim_id& id) {
  const lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second;
}

// The phase before. Called with the mutex held.
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
void zookeeper_store::forget(const entry_ptr& which) {
  if (pass_to(*which, entry::phase::over) == entry::phase::over) return;
  which->life->unhold();
  if (which->watch) which->life->unwatch(which->watched_by, which->watched, which->watch);
  const auto found = entries_.find(which->claim->id);
  if (found != entries_.end() && found->second == which) entries_.erase(found);
}

void zookeeper_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                              const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  entry_ptr which = find(claim->id);
  if (which == nullptr) {
    which = std::make_shared<entry>();
    which->life = session_for(session_time(*claim));
    which->path = path_of(*options_, claim->resource);
    which->kind = kind_of(*claim, options_->election);
    // kazoo's semaphore is made of other nodes than Curator's, which ours is.
    which->naming = claim->mode == spi::mode::permit ? node_naming::curator : options_->naming;
    which->parent = which->path;
    if (claim->mode == spi::mode::permit) which->parent += "/" + std::string(locks_folder);
    which->claim = std::move(claim);
    which->life->hold();
    const lock_guard lock(mutex_);
    entries_.insert_or_assign(which->claim->id, which);
    wake_tick();
  }
  {
    const lock_guard lock(mutex_);
    which->wakeup = std::move(wakeup);
    which->until = context;
    which->attempts.push_back(std::move(done));
    which->end_at = std::max(context.deadline, now() + waiter_lease);
  }
  kick(which);
}

void zookeeper_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                            spi::completion<spi::armed> done) {
  done(spi::armed::recheck);  // a waiter here is in line
}

void zookeeper_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                            spi::completion<spi::departure> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  const entry_ptr which = find(claim->id);
  if (which == nullptr) return done(spi::departure::gone);
  {
    const lock_guard lock(mutex_);
    which->until = context;
    which->leaves.push_back(std::move(done));
  }
  kick(which);
}

void zookeeper_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                             spi::completion<spi::granted> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  const entry_ptr which = find(claim->id);
  if (which == nullptr) return done(failure(errc::lost, "not held any more"));
  if (to == spi::mode::permit || which->permit()) {
    return done(failure(errc::invalid, "a semaphore's permits have no other mode"));
  }
  {
    const lock_guard lock(mutex_);
    which->until = context;
    which->changes.push_back({to, std::move(done)});
  }
  kick(which);
}

// What the session's proof is worth from now on. The margin for clocks is taken of the whole
// time-out, as it has been running since the proof.
spi::granted zookeeper_store::grant_of(const entry& which, time_point at) const {
  const spi::claim& claim = *which.claim;
  spi::granted grant;
  grant.fence = fence_of(which.created);
  grant.at = server_time_of(at);
  grant.wanted = which.wanted;
  const time_point until = which.life->proven_until(which.owner);
  if (until == time_point::min()) return grant;  // ttl 0: worth nothing
  duration left = until - which.life->timeout() / 100 - claim.lock_delay - at;
  if (!claim.renewed && which.granted_at != time_point{}) {
    left = std::min(left, which.granted_at + claim.ttl - at);
  } else if (!claim.renewed) {
    left = std::min(left, claim.ttl);
  }
  grant.ttl = std::max(left, duration{0});
  return grant;
}

// Called with the mutex held.
spi::renewal zookeeper_store::renewal_of(entry& which, time_point at, bool& look_again) {
  const spi::claim& claim = *which.claim;
  spi::renewal answer;
  answer.at = server_time_of(at);
  answer.recheck_after = recheck_after;
  if (which.where == entry::phase::held) {
    answer.grant = grant_of(which, at);
    // Without a fresh proof there is nothing to say: the session may be over.
    if (answer.grant.ttl <= which.life->timeout() / 4 && claim.renewed) return answer;
    if (answer.grant.ttl == duration{0}) return answer;
    const bool renewed = claim.renewed && !which.revoked;
    answer.state = renewed ? spi::hold_state::renewed : spi::hold_state::held;
    if (renewed) which.end_at = at + std::max(claim.ttl, answer.grant.ttl) + claim.lock_delay;
  } else if (which.where == entry::phase::waiting && which.armed && which.life->open(which.owner)) {
    answer.state = spi::hold_state::waiting;
    which.end_at = at + waiter_lease;
    look_again = at - which.looked_at > look_again_after;
  }
  return answer;
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
        lost.at = server_time_of(at);
        answers.push_back(lost);
        continue;
      }
      bool look_again = false;
      answers.push_back(renewal_of(*found->second, at, look_again));
      if (!look_again) continue;
      found->second->until = context;
      found->second->looked_at = at;
      stale.push_back(found->second);
    }
  }
  for (const entry_ptr& each : stale) kick(each);
  done(std::move(answers));
}

// --- time ----------------------------------------------------------------------------------------

// Called with the mutex held.
void zookeeper_store::wake_tick() {
  if (ticking_ || closed_) return;
  ticking_ = true;
  tick_timer_ = net_.reactor->at(now() + quick_tick, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

// Holds that have lasted are watched; what was not renewed ends, its node with it, although its
// session lives on.
void zookeeper_store::tick() {
  std::vector<entry_ptr> lasting;
  std::vector<entry_ptr> ended;
  const time_point at = now();
  {
    const lock_guard lock(mutex_);
    ticking_ = false;
    if (closed_) return;
    bool fresh = false;
    for (const auto& [id, each] : entries_) {
      if (each->end_at <= at && !each->ending) {
        each->ending = true;
        each->until = at + std::max<duration>(recheck_after, each->life->wanted() / 3);
        ended.push_back(each);
        continue;
      }
      if (each->where != entry::phase::held || each->own_watched) continue;
      fresh = true;
      if (at - each->granted_at >= short_hold) lasting.push_back(each);
    }
    if (!entries_.empty()) {
      ticking_ = true;
      tick_timer_ =
          net_.reactor->at(at + (fresh ? quick_tick : slow_tick), [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->tick();
          });
    }
    for (const entry_ptr& each : lasting) each->own_watched = true;
  }
  for (const entry_ptr& each : lasting) guard(shared_from_this(), each);
  for (const entry_ptr& each : ended) kick(each);
}

void zookeeper_store::close() noexcept {
  if (guard_.forked()) return;
  if (closed_.exchange(true)) return;
  std::map<duration, std::shared_ptr<session>> sessions;
  spi::runtime::timer_id timer = 0;
  {
    const lock_guard lock(mutex_);
    sessions = sessions_;
    timer = tick_timer_;
  }
  net_.reactor->cancel(timer);
  for (const auto& [wanted, each] : sessions) each->close();
  // A claim that the engine was never reached for is not left: its entry knows the client, which knows this store.
  std::map<spi::claim_id, entry_ptr> left;
  {
    const lock_guard lock(mutex_);
    left = std::exchange(entries_, {});
  }
}

}  // namespace holdfast::zookeeper
