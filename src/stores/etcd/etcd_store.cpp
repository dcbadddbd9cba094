// The verbs of claims, leases, and what time does to claims that nobody renews.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

// A hold that lasts longer is watched: for force, for revocation, for those who wait behind it.
constexpr duration short_hold = std::chrono::milliseconds(20);
constexpr duration quick_tick = std::chrono::milliseconds(20);
constexpr duration slow_tick = std::chrono::milliseconds(100);

spi::caps make_caps() {
  spi::caps caps;
  caps.engine = "etcd";
  caps.supports_detach = true;
  // Handing a claim on puts its key once more, and Go's RWMutex orders by the last change of a key.
  caps.supports_shared_detach = false;
  return caps;
}

}  // namespace

etcd_store::etcd_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : net_(net::make_network(std::move(reactor))),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(make_caps()),
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

void etcd_store::lease_ended(std::int64_t id) {
  std::vector<entry_ptr> those;
  {
    const lock_guard lock(mutex_);
    for (const auto& [claim, each] : entries_) {
      if (each->owner == id) those.push_back(each);
    }
  }
  for (const entry_ptr& each : those) gone(each, {errc::lost, "the etcd lease has ended"});
}

// --- claims --------------------------------------------------------------------------------------

entry_ptr etcd_store::find(const spi::claim_id& id) {
  const lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second;
}

// Called with the mutex held. Its watches are removed by drop_watches().
void etcd_store::forget(const entry_ptr& which) {
  if (std::exchange(which->where, entry::phase::over) == entry::phase::over) return;
  which->life->unhold();
  const auto found = entries_.find(which->claim->id);
  if (found != entries_.end() && found->second == which) entries_.erase(found);
  const auto reused = reused_keys_.find(which->key);
  if (reused != reused_keys_.end() && reused->second == which->claim->id)
    reused_keys_.erase(reused);
}

// Called with the mutex held.
void etcd_store::choose_key(entry& which) {
  which.id = spi::to_hex(which.claim->id);
  // A candidate's value is shown by others' clients as it is: no room to say whose the key is now.
  const bool reuses = which.claim->role != spi::role::leader;
  const auto spare = reuses ? spare_keys_.take(claim_key(which.prefix, which.kind, {}))
                            : std::optional<std::string>();
  if (spare) which.id = *spare;
  which.key = claim_key(which.prefix, which.kind, which.id);
  if (spare) reused_keys_.insert_or_assign(which.key, which.claim->id);
}

// Called with the mutex held, when the key was removed. What a request that is still under way does to it, it must
// not do to another claim.
void etcd_store::spare(const entry& which) {
  if (which.late || which.adopted || which.claim->role == spi::role::leader) return;
  spare_keys_.add(claim_key(which.prefix, which.kind, {}), which.id);
}

void etcd_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                         const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  entry_ptr which = find(claim->id);
  if (which == nullptr) {
    which = std::make_shared<entry>();
    which->life = lease_for(lease_time(*claim));
    which->prefix = prefix_of(*options_, claim->resource);
    which->kind = kind_of(*claim);
    which->mode = claim->mode;
    which->claim = std::move(claim);
    which->life->hold();
    const lock_guard lock(mutex_);
    choose_key(*which);
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

void etcd_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                       spi::completion<spi::armed> done) {
  done(spi::armed::recheck);  // a waiter here is in line
}

void etcd_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                       spi::completion<spi::departure> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  const entry_ptr which = find(claim->id);
  if (which == nullptr && claim->detached) {
    do_release_detached(shared_from_this(), std::move(claim), context, std::move(done));
    return;
  }
  if (which == nullptr) return done(spi::departure::gone);
  {
    const lock_guard lock(mutex_);
    which->until = context;
    which->unanswered = which->unanswered || context.unanswered;
    which->leaves.push_back(std::move(done));
  }
  kick(which);
}

void etcd_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
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

// What the lease's proof is worth from now on. The margin for clocks is taken of its whole time, as it
// has been running since the proof.
spi::granted etcd_store::grant_of(const entry& which, time_point at) const {
  const spi::claim& claim = *which.claim;
  spi::granted grant;
  grant.fence = fence_of(which.fenced);
  grant.at = spi::server_time(at.time_since_epoch());
  grant.wanted = which.wanted;
  const time_point until = which.life->proven_until(which.owner);
  if (until == time_point::min()) return grant;  // ttl 0: worth nothing
  duration left = until - which.life->time() / 100 - claim.lock_delay - at;
  if (!claim.renewed && which.granted_at != time_point{}) {
    left = std::min(left, which.granted_at + claim.ttl - at);
  } else if (!claim.renewed) {
    left = std::min(left, claim.ttl);
  }
  grant.ttl = std::max(left, duration{0});
  return grant;
}

// --- time ----------------------------------------------------------------------------------------

// Called with the mutex held.
void etcd_store::wake_tick() {
  if (ticking_ || closed_) return;
  ticking_ = true;
  tick_timer_ = net_.reactor->at(now() + quick_tick, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

// Holds that have lasted are watched; what was not renewed ends, its key with it, although its lease
// lives on.
void etcd_store::tick() {
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
      if (each->where != entry::phase::held || each->guarded) continue;
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
    for (const entry_ptr& each : lasting) each->guarded = true;
  }
  for (const entry_ptr& each : lasting) guard(each);
  for (const entry_ptr& each : ended) kick(each);
}

void etcd_store::close() noexcept {
  if (guard_.forked()) return;
  if (closed_.exchange(true)) return;
  std::vector<call> farewell;
  spi::runtime::timer_id timer = 0;
  {
    const lock_guard lock(mutex_);
    for (const auto& [wanted, each] : leases_) {
      if (each->id() != 0) farewell.push_back(lease_call(method::lease_revoke, each->id()));
    }
    timer = tick_timer_;
  }
  net_.reactor->cancel(timer);
  blockers_->close();
  watches_->close();
  way_->close(farewell);
}

}  // namespace holdfast::etcd
