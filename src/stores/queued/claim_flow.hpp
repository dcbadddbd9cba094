// The verbs of claims in a store with a queue of nodes (ZooKeeper) or keys (etcd), and the expiry
// of claims that nobody renews. One flow at a time works on a claim, and does what is requested of
// it in turn. Leaving comes first: a claim that leaves must not be granted on its way out.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/flow.hpp"
#include "stores/queued/queued_claim.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::stores {

// Thread-safe. No lock is held while a completion or a wakeup is called.
//
// Entry derives from queued_claim, and has
//   life                                    the session or lease by which it lives, shared with other claims
//   bool nothing_made() const               nothing of it is on the server
//   fence_token fence() const               of a hold
//   duration life_time() const              of its session or lease, as granted
// Store derives from this, and has
//   entry_ptr make_entry(claim_ptr)         of a claim that comes for the first time
//   task<result<outcome>> place(self, entry, until)         a place in line, or a look at it
//   task<result<departure>> depart(self, entry, until)      out of the line
//   task<result<granted>> change_mode(self, entry, to, until)
//   void guard(entry)                       a hold that lasts: watch it
//   void forgotten(entry)                   with the mutex held
// and, where the defaults below are not enough, what hides them.
template <class Store, class Entry>
class claim_flow : public spi::store, public std::enable_shared_from_this<Store> {
 public:
  claim_flow(const claim_flow&) = delete;
  claim_flow& operator=(const claim_flow&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override {
    if (closed_) return done(failure(errc::cancelled, "closed"));
    entry_ptr which = find(claim->id);
    if (which == nullptr) {
      which = store().make_entry(std::move(claim));
      add(which);
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

  void watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
             spi::completion<spi::armed> done) override {
    done(spi::armed::recheck);  // a waiter here is in the queue
  }

  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override {
    if (closed_) return done(failure(errc::cancelled, "closed"));
    const entry_ptr which = find(claim->id);
    if (which == nullptr) {
      return store().leave_unknown(std::move(claim), context, std::move(done));
    }
    {
      const lock_guard lock(mutex_);
      which->until = context;
      which->unanswered = which->unanswered || context.unanswered;
      which->leaves.push_back(std::move(done));
    }
    kick(which);
  }

  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override {
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

 protected:
  using self_ptr = std::shared_ptr<Store>;
  using entry_ptr = std::shared_ptr<Entry>;
  using lock_guard = std::unique_lock<std::mutex>;
  using phase = queued_claim::phase;

  claim_flow(std::shared_ptr<spi::reactor> reactor, spi::caps caps)
      : net_(net::make_network(std::move(reactor))), caps_(std::move(caps)) {}
  ~claim_flow() override = default;

  // --- defaults that an engine may hide ---

  // What remains to be done for a settled claim when the mutex is free.
  struct follow_up {};
  // Called with the mutex held when an answer has been decided, and when the claim is over.
  [[nodiscard]] follow_up settled(const entry_ptr&) { return {}; }
  void carry_out(const follow_up&) {}
  // Returns the previous phase. Called with the mutex held.
  phase pass_to(Entry& which, phase next) { return std::exchange(which.where, next); }
  // For a claim that this process does not know.
  void leave_unknown(spi::claim_ptr, const spi::op_context&, spi::completion<spi::departure> done) {
    done(spi::departure::gone);
  }
  static task<result<spi::granted>> hand_on(self_ptr, entry_ptr, const queued_claim::handover&,
                                            net::patience) {
    co_return failure(errc::unsupported);
  }

  // --- claims ---

  [[nodiscard]] time_point now() const noexcept { return net_.reactor->now(); }

  entry_ptr find(const spi::claim_id& id) {
    const lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : found->second;
  }

  void add(const entry_ptr& which) {
    which->life->hold();
    const lock_guard lock(mutex_);
    entries_.insert_or_assign(which->claim->id, which);
    wake_tick();
  }

  // Called with the mutex held.
  void forget(const entry_ptr& which) {
    if (store().pass_to(*which, phase::over) == phase::over) return;
    which->life->unhold();
    const auto found = entries_.find(which->claim->id);
    if (found != entries_.end() && found->second == which) entries_.erase(found);
    store().forgotten(*which);
  }

  // The session or lease with this id has ended. A claim that has nothing on the server yet goes on:
  // what places it learns of the end from its own answer, and takes the next session or lease.
  void life_ended(std::int64_t id, const char* why) {
    std::vector<entry_ptr> those;
    {
      const lock_guard lock(mutex_);
      for (const auto& [claim, each] : entries_) {
        if (each->owner == id && each->created != 0) those.push_back(each);
      }
    }
    for (const entry_ptr& each : those) gone(each, {errc::lost, why});
  }

  // Called with the mutex held, when the store is closed. A hold with a lock delay that was not
  // released must run out (G5.7): to end its session or lease would end the delay.
  [[nodiscard]] bool runs_out(const decltype(Entry::life)& life) const {
    return std::ranges::any_of(entries_, [&](const auto& each) {
      const Entry& which = *each.second;
      return which.life == life && which.where == phase::held && !which.leaving() &&
             which.claim->lock_delay > duration{0};
    });
  }

  // What the proof of the session or lease is worth from now on. The margin for clocks is computed
  // from its whole time, which has been running since the proof.
  [[nodiscard]] spi::granted grant_of(const Entry& which, time_point at) const {
    const spi::claim& claim = *which.claim;
    spi::granted grant;
    grant.fence = which.fence();
    grant.at = server_time_of(at);
    grant.wanted = which.wanted;
    const time_point until = which.life->proven_until(which.owner);
    if (until == time_point::min()) return grant;  // ttl 0: worth nothing
    duration left = until - which.life_time() / 100 - claim.lock_delay - at;
    if (!claim.renewed && which.granted_at != time_point{}) {
      left = std::min(left, which.granted_at + claim.ttl - at);
    } else if (!claim.renewed) {
      left = std::min(left, claim.ttl);
    }
    grant.ttl = std::max(left, duration{0});
    return grant;
  }

  // --- the work on one claim ---

  void kick(const entry_ptr& which) {
    {
      const lock_guard lock(mutex_);
      which->dirty = true;
      if (std::exchange(which->running, true)) return;
    }
    run(this->shared_from_this(), which);
  }

  // Settles everything that waits for the claim: it is over.
  void gone(const entry_ptr& which, const error& why) {
    std::vector<spi::completion<spi::outcome>> attempts;
    std::vector<spi::completion<spi::departure>> leaves;
    std::vector<queued_claim::change> changes;
    std::vector<queued_claim::handover> handovers;
    std::shared_ptr<spi::wakeup> tell;
    typename Store::follow_up rest;
    {
      const lock_guard lock(mutex_);
      attempts = std::exchange(which->attempts, {});
      leaves = std::exchange(which->leaves, {});
      changes = std::exchange(which->changes, {});
      handovers = std::exchange(which->handovers, {});
      if (which->where != phase::over) tell = which->wakeup;
      forget(which);
      rest = store().settled(which);
    }
    store().carry_out(rest);
    for (auto& each : attempts) each(failure(errc::lost, why.detail));
    for (auto& each : leaves) each(spi::departure::gone);
    for (auto& each : changes) each.done(failure(errc::lost, why.detail));
    for (auto& each : handovers) each.done(failure(errc::not_held, why.detail));
    if (tell && !closed_) tell->gone(why);
  }

  // --- time ---

  // When the store is closed, before its sessions or leases: nothing begins by itself any more.
  void stop_ticking() noexcept {
    spi::runtime::timer_id timer = 0;
    {
      const lock_guard lock(mutex_);
      timer = tick_timer_;
    }
    net_.reactor->cancel(timer);
  }
  // And after them. A claim for which the engine was never reached is not left, and its entry
  // refers to the client, which refers to this store.
  void drop_entries() noexcept {
    std::map<spi::claim_id, entry_ptr> left;
    const lock_guard lock(mutex_);
    left = std::exchange(entries_, {});
  }

  const runtime::fork_guard guard_;
  const net::network net_;
  const spi::caps caps_;
  std::atomic<bool> closed_{false};

  std::mutex mutex_;
  std::map<spi::claim_id, entry_ptr> entries_;  // guarded by mutex_

 private:
  // A hold that lasts longer is watched: for force, for revocation, for waiters behind it.
  static constexpr duration short_hold = std::chrono::milliseconds(20);
  static constexpr duration quick_tick = std::chrono::milliseconds(20);
  static constexpr duration slow_tick = std::chrono::milliseconds(100);

  Store& store() noexcept { return static_cast<Store&>(*this); }

  static flow run(self_ptr self, entry_ptr which) {
    for (;;) {
      queued_claim::job next;
      {
        const lock_guard lock(self->mutex_);
        const bool over = which->where == phase::over;
        if (over || !std::exchange(which->dirty, false)) {
          which->running = false;
          if (!over) co_return;
        }
        if (over) break;
        next = which->next_job();
      }
      if (next.leaves) {
        const result<spi::departure> left = co_await Store::depart(self, which, next.until);
        self->settle_leave(which, left);
      } else if (next.handover) {
        result<spi::granted> moved =
            co_await Store::hand_on(self, which, *next.handover, next.until);
        self->settle_handover(which, *next.handover, std::move(moved));
      } else if (next.change) {
        result<spi::granted> changed =
            co_await Store::change_mode(self, which, next.change->to, next.until);
        next.change->done(std::move(changed));
      } else if (next.places) {
        result<spi::outcome> placed = co_await Store::place(self, which, next.until);
        self->settle(which, std::move(placed));
      }
    }
    // Forgotten meanwhile: callers that came too late learn of it.
    self->gone(which, {errc::lost, "the claim is over"});
  }

  void settle(const entry_ptr& which, result<spi::outcome> outcome) {
    std::vector<spi::completion<spi::outcome>> attempts;
    std::shared_ptr<spi::wakeup> tell;
    typename Store::follow_up rest;
    {
      const lock_guard lock(mutex_);
      if (which->where == phase::over) return;  // the flow ends with gone()
      attempts = std::exchange(which->attempts, {});
      if (!outcome && outcome.error() != errc::lost) {
        settle_refusal(which, outcome.error());
      } else if (outcome && std::holds_alternative<spi::granted>(*outcome)) {
        const time_point at = now();
        const bool first = store().pass_to(*which, phase::held) != phase::held;
        const time_point since = which->granted_at == time_point{} ? at : which->granted_at;
        const spi::granted grant = grant_of(*which, at);
        // Nobody uses a hold that is worth nothing, so the time of a lease that is
        // not renewed has not begun.
        if (grant.ttl > duration{0}) which->granted_at = since;
        which->end_at = which->end_of_hold(at, since, grant.ttl);
        outcome = grant;
        if (first && attempts.empty()) tell = which->wakeup;
      } else if (outcome) {
        auto& blocked = std::get<spi::blocked>(*outcome);
        blocked.at = server_time_of(now());
        store().pass_to(*which, phase::waiting);
        if (!blocked.queued) forget(which);
      }
      rest = store().settled(which);
    }
    store().carry_out(rest);
    for (auto& each : attempts) each(outcome);
    if (tell && !closed_) tell->notify(std::get<spi::granted>(*outcome));
    if (!outcome && outcome.error() == errc::lost) gone(which, outcome.error());
  }

  // Called with the mutex held.
  void settle_refusal(const entry_ptr& which, error& why) {
    const bool definite = why != errc::unavailable;
    const bool nothing = which->nothing_made();
    why.unsent = why.unsent && nothing;
    if (definite && nothing) {
      forget(which);
    } else if (definite && which->where != phase::held) {
      // The core has no further calls for a refused claim: what it made so far is ours to remove.
      which->ending = true;
      which->dirty = true;
    }
  }

  void settle_leave(const entry_ptr& which, const result<spi::departure>& outcome) {
    constexpr duration pause = std::chrono::seconds(1);  // until the store tries again by itself
    std::vector<spi::completion<spi::departure>> leaves;
    std::vector<spi::completion<spi::outcome>> attempts;
    std::vector<queued_claim::change> changes;
    std::vector<queued_claim::handover> handovers;
    typename Store::follow_up rest;
    {
      const lock_guard lock(mutex_);
      leaves = std::exchange(which->leaves, {});
      if (outcome) {
        attempts = std::exchange(which->attempts, {});
        changes = std::exchange(which->changes, {});
        handovers = std::exchange(which->handovers, {});
        forget(which);
        rest = store().settled(which);
      } else if (std::exchange(which->ending, false)) {
        which->end_at = now() + pause;
      }
    }
    store().carry_out(rest);
    for (auto& each : leaves) each(outcome);
    for (auto& each : attempts) each(failure(errc::lost, "left before"));
    for (auto& each : changes) each.done(failure(errc::lost, "left before"));
    for (auto& each : handovers) each.done(failure(errc::not_held, "left before"));
  }

  void settle_handover(const entry_ptr& which, queued_claim::handover& what,
                       result<spi::granted> outcome) {
    const bool gives = what.from == which->claim->id;
    typename Store::follow_up rest;
    {
      const lock_guard lock(mutex_);
      const bool nothing = which->nothing_made();
      if (!outcome && !gives) outcome.error().unsent = outcome.error().unsent && nothing;
      // Given away, or never ours. If that is unknown, the core leaves the claim,
      // or it ends with its time.
      if (gives ? outcome.has_value()
                : !outcome && outcome.error() != errc::unavailable && nothing) {
        forget(which);
        rest = store().settled(which);
      }
    }
    store().carry_out(rest);
    what.done(std::move(outcome));
  }

  // Called with the mutex held.
  void wake_tick() {
    if (ticking_ || closed_) return;
    schedule_tick(now() + quick_tick);
  }

  // Called with the mutex held.
  void schedule_tick(time_point when) {
    ticking_ = true;
    tick_timer_ = net_.reactor->at(when, [weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) self->tick();
    });
  }

  // Holds that have lasted are watched; a claim that was not renewed ends, and its node or key with
  // it, although its session or lease lives on.
  void tick() {
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
        if (each->where != phase::held || each->own_watched || each->leaving()) continue;
        fresh = true;
        if (at - each->granted_at >= short_hold) lasting.push_back(each);
      }
      if (!entries_.empty()) schedule_tick(at + (fresh ? quick_tick : slow_tick));
      for (const entry_ptr& each : lasting) each->own_watched = true;
    }
    for (const entry_ptr& each : lasting) store().guard(each);
    for (const entry_ptr& each : ended) kick(each);
  }

  spi::runtime::timer_id tick_timer_ = 0;  // guarded by mutex_
  bool ticking_ = false;                   // guarded by mutex_
};

}  // namespace holdfast::stores
