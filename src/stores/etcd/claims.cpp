// The work on one claim: one flow at a time, which does what is wanted of it in turn. Leaving comes
// first: who leaves must not be granted on its way out.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

void etcd_store::kick(const entry_ptr& which) {
  {
    const lock_guard lock(mutex_);
    which->dirty = true;
    if (std::exchange(which->running, true)) return;
  }
  run(shared_from_this(), which);
}

flow etcd_store::run(self_ptr self, entry_ptr which) {
  for (;;) {
    bool leaves = false;
    bool adopted = false;
    std::optional<entry::change> change;
    std::optional<entry::handover> handover;
    net::patience until;
    {
      const lock_guard lock(self->mutex_);
      const bool over = which->where == entry::phase::over;
      if (over || !std::exchange(which->dirty, false)) {
        which->running = false;
        if (!over) co_return;
      }
      if (over) break;
      leaves = !which->leaves.empty() || which->ending;
      until = which->until;
      adopted = which->adopted;
      if (!leaves && !which->handovers.empty()) {
        handover = std::move(which->handovers.front());
        which->handovers.erase(which->handovers.begin());
        which->dirty =
            !which->handovers.empty() || !which->changes.empty() || !which->attempts.empty();
      } else if (!leaves && !which->changes.empty()) {
        change = std::move(which->changes.front());
        which->changes.erase(which->changes.begin());
        which->dirty = !which->changes.empty() || !which->attempts.empty();
      }
    }
    if (leaves) {
      const result<spi::departure> left = co_await depart(self, which, until);
      self->settle_leave(which, left);
    } else if (handover && handover->from == which->claim->id) {
      result<spi::granted> given = co_await hand_over(self, which, handover->to, until);
      self->settle_handover(which, *handover, std::move(given));
    } else if (handover) {
      result<spi::granted> taken = co_await take_over(self, which, handover->from, until);
      self->settle_handover(which, *handover, std::move(taken));
    } else if (change) {
      result<spi::granted> changed = co_await change_mode(self, which, change->to, until);
      change->done(std::move(changed));
    } else if (!adopted) {  // what was adopted has its place
      result<spi::outcome> placed = co_await place(self, which, until);
      self->settle(which, std::move(placed));
    }
  }
  // Forgotten meanwhile: callers that came too late learn it.
  self->gone(which, {errc::lost, "the claim is over"});
}

// Of a claim that may still be put by a request that was never answered a tombstone stays, on the lease
// on which that request would put it.
task<result<spi::departure>> etcd_store::depart(self_ptr self, entry_ptr which,
                                                net::patience until) {
  std::int64_t owner = 0;
  bool held = false;
  bool uncertain = false;
  bool moves = false;
  {
    const lock_guard lock(self->mutex_);
    owner = which->owner;
    held = which->where == entry::phase::held;
    uncertain = which->uncertain || which->unanswered;
    if (owner == 0 || (which->created == 0 && !uncertain)) co_return spi::departure::gone;
    which->late = which->late || uncertain || std::exchange(which->removing, true);
    moves = which->adopted || which->handing_over;
  }
  std::size_t parts = 1;
  txn_writer step;
  // Where the key may be another claim's, that one's stays.
  if (which->adopted) {
    step.value(owner_key(which->key), owner_text(*which->claim));
  } else if (moves) {
    step.created({owner_key(which->key)}, txn_writer::relation::equal, 0);
  }
  step.then_delete(delete_body(which->keys()));
  if (which->kind == claim_kind::reader) {
    const std::string mode = mode_key(which->prefix, which->kind, which->id);
    step.then_delete(delete_body({mode}));
    ++parts;
  }
  if (uncertain) {
    ++parts;
    const std::string put = put_body(tombstone_of(*self->options_, which->claim->id), {}, owner);
    step.then_put(put).else_put(put);
  }
  std::vector<call> calls;
  calls.push_back(std::move(step).made());
  const replies answers = co_await asking(self->way_, std::move(calls), until);
  const result<reply>& answer = answers.front();
  if (!answer) co_return tl::unexpected(answer.error());
  if (lease_is_gone(answer->status)) {
    which->life->ended(owner);
    co_return spi::departure::gone;
  }
  if (!answer->ok()) co_return tl::unexpected(refusal("delete", which->key, answer->status));
  const auto done = read_txn(answer->body);
  if (!done) co_return tl::unexpected(done.error());
  const bool expected = done->succeeded ? done->parts.size() == parts : moves;
  if (!expected) co_return failure(errc::unavailable, "etcd: an unexpected answer to a deletion");
  const bool removed = done->succeeded && done->parts.front().deleted > 0;
  const lock_guard lock(self->mutex_);
  if (removed) self->last_removal_ = std::max(self->last_removal_, done->header.revision);
  which->created = 0;
  which->uncertain = false;
  if (!removed) co_return spi::departure::gone;
  self->spare(*which);
  co_return held ? spi::departure::was_holder : spi::departure::was_waiting;
}

void etcd_store::settle(const entry_ptr& which, result<spi::outcome> outcome) {
  std::vector<spi::completion<spi::outcome>> attempts;
  std::shared_ptr<spi::wakeup> tell;
  std::vector<watch_hub::watch_id> unneeded;
  entry_ptr next;
  {
    const lock_guard lock(mutex_);
    if (which->where == entry::phase::over) return;  // the flow ends with gone()
    attempts = std::exchange(which->attempts, {});
    if (!outcome && outcome.error() != errc::lost) {
      const bool definite = outcome.error() != errc::unavailable;
      const bool nothing = which->created == 0 && !which->uncertain;
      outcome.error().unsent = outcome.error().unsent && nothing;
      if (definite && nothing) {
        forget(which);
      } else if (definite && which->where != entry::phase::held) {
        // Who is refused is not heard of any more: what it made so far is ours to remove.
        which->ending = true;
        which->dirty = true;
      }
    } else if (outcome && std::holds_alternative<spi::granted>(*outcome)) {
      const time_point at = now();
      const bool first = std::exchange(which->where, entry::phase::held) != entry::phase::held;
      const time_point since = which->granted_at == time_point{} ? at : which->granted_at;
      const spi::granted grant = grant_of(*which, at);
      // What is worth nothing is believed by nobody: the time of a lease that is not renewed has not begun.
      if (grant.ttl > duration{0}) which->granted_at = since;
      const spi::claim& claim = *which->claim;
      which->end_at = claim.renewed ? at + std::max(claim.ttl, grant.ttl) + claim.lock_delay
                                    : since + claim.ttl + claim.lock_delay;
      outcome = grant;
      if (first && attempts.empty()) tell = which->wakeup;
      which->watch.reset();
    } else if (outcome) {
      auto& blocked = std::get<spi::blocked>(*outcome);
      blocked.at = spi::server_time(now().time_since_epoch());
      which->where = entry::phase::waiting;
      if (!blocked.queued) forget(which);
    }
    if (which->where == entry::phase::over) drop_watches(which, unneeded);
    if (which->where != entry::phase::waiting) next = leave_permits(which);
  }
  for (const auto each : unneeded) watches_->remove(each);
  if (next) look_again(next);
  for (auto& each : attempts) each(outcome);
  if (tell && !closed_) tell->notify(std::get<spi::granted>(*outcome));
  if (!outcome && outcome.error() == errc::lost) gone(which, outcome.error());
}

void etcd_store::settle_leave(const entry_ptr& which, const result<spi::departure>& outcome) {
  constexpr duration pause = std::chrono::seconds(1);  // until the store tries again by itself
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<entry::change> changes;
  std::vector<entry::handover> handovers;
  std::vector<watch_hub::watch_id> unneeded;
  entry_ptr next;
  {
    const lock_guard lock(mutex_);
    leaves = std::exchange(which->leaves, {});
    if (outcome) {
      next = leave_permits(which);
      attempts = std::exchange(which->attempts, {});
      changes = std::exchange(which->changes, {});
      handovers = std::exchange(which->handovers, {});
      forget(which);
      drop_watches(which, unneeded);
    } else if (std::exchange(which->ending, false)) {
      which->end_at = now() + pause;
    }
  }
  for (const auto each : unneeded) watches_->remove(each);
  if (next) look_again(next);
  for (auto& each : leaves) each(outcome);
  for (auto& each : attempts) each(failure(errc::lost, "left before"));
  for (auto& each : changes) each.done(failure(errc::lost, "left before"));
  for (auto& each : handovers) each.done(failure(errc::not_held, "left before"));
}

void etcd_store::gone(const entry_ptr& which, const error& why) {
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<entry::change> changes;
  std::vector<entry::handover> handovers;
  std::shared_ptr<spi::wakeup> tell;
  std::vector<watch_hub::watch_id> unneeded;
  entry_ptr next;
  {
    const lock_guard lock(mutex_);
    next = leave_permits(which);
    attempts = std::exchange(which->attempts, {});
    leaves = std::exchange(which->leaves, {});
    changes = std::exchange(which->changes, {});
    handovers = std::exchange(which->handovers, {});
    if (which->where != entry::phase::over) tell = which->wakeup;
    forget(which);
    drop_watches(which, unneeded);
  }
  for (const auto each : unneeded) watches_->remove(each);
  if (next) look_again(next);
  for (auto& each : attempts) each(failure(errc::lost, why.detail));
  for (auto& each : leaves) each(spi::departure::gone);
  for (auto& each : changes) each.done(failure(errc::lost, why.detail));
  for (auto& each : handovers) each.done(failure(errc::not_held, why.detail));
  if (tell && !closed_) tell->gone(why);
}

}  // namespace holdfast::etcd
