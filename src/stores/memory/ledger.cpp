// The verbs of a claim: attempt, leave, renew, change; and the table of resources.
#include "stores/memory/ledger.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

using core::mutant;
using core::mutated;

ledger::ledger(memory::rules rules, reachability reachable, std::uint64_t fence_floor)
    : rules_(rules),
      reachable_(std::move(reachable)),
      fence_floor_(fence_floor),
      next_sweep_(rules.idle_limit),
      latches_({rules.latch_life, rules.tombstone_extra}) {}

result<spi::outcome> ledger::attempt(spi::server_time now, const spi::claim_ptr& claim,
                                     process_id process, std::optional<spi::server_time> not_after,
                                     effects& out) {
  tombstones_.drop_ended(now);
  if (latches_.alive(now, claim->resource)) {
    return failure(errc::name_conflict, "the name is in use as a latch");
  }
  if (claim->proposed_fence && !born_) born_ = now;
  const moment step{now, out, process, &claim->id};
  resource& at = place_of(now, claim->resource);
  promote(step, at);
  if (at.holders.find(claim->id) != nullptr) return prolong(step, at, claim->id);
  if (at.line.find(claim->id) != nullptr) {
    keep_place(step, at, claim->id);
    return blocked_at(step, at, claim->id);
  }
  if (!mutated(mutant::late_duplicate_revives)) {
    if (tombstones_.contains(claim->id)) return failure(errc::lost, "left before");
    if (not_after && now > *not_after) return failure(errc::lost, "too late");
  }
  if (auto accepted = at.accepts(*claim); !accepted) {
    return tl::unexpected(std::move(accepted.error()));
  }
  if (std::max(at.holders.size(), at.line.size()) >= rules_.claim_limit) {
    return failure(errc::overloaded, "claims on one name");
  }
  return place(step, at, claim);
}

// A newcomer: granted, queued, or turned away.
spi::outcome ledger::place(const moment& step, resource& at, const spi::claim_ptr& claim) {
  if (may_take(step, at, *claim)) {
    grant(step, at, claim, *step.process);
    return granted_at(step, at, claim->id);
  }
  if (!claim->queued) return blocked_at(step, at, claim->id);
  at.line.join({claim, *step.process, step.now, step.now, false}, after(step.now, waiter_lease()));
  note(step, at, spi::event_kind::queued, *claim);
  at.holders.tell_wanted(step.out);
  // With one more in line, somebody who was only told that it is free may now be handed it.
  promote(step, at);
  if (at.holders.find(claim->id) != nullptr) return granted_at(step, at, claim->id);
  return blocked_at(step, at, claim->id);
}

spi::departure ledger::leave(spi::server_time now, const spi::claim& claim, process_id process,
                             on_leave then, effects& out) {
  tombstones_.drop_ended(now);
  if (then == on_leave::remember) remember(now, claim);
  resource* at = known(claim.resource);
  if (at == nullptr) return spi::departure::gone;
  const moment step{now, out, process, nullptr};
  // Not promoted yet: who leaves must not be granted on its way out.
  drop_ended(step, *at);
  const spi::departure left = remove(step, *at, claim.id);
  promote(step, *at);
  return left;
}

spi::departure ledger::remove(const moment& step, resource& at, const spi::claim_id& id) {
  if (const auto waited = at.line.remove(id)) {
    note(step, at, spi::event_kind::withdrawn, *waited->claim);
    return spi::departure::was_waiting;
  }
  auto held = at.holders.remove(id);
  if (!held && mutated(mutant::release_without_owner_check) && !at.holders.empty()) {
    held = at.holders.remove(at.holders.begin()->first);
  }
  if (!held) return spi::departure::gone;
  if (mutated(mutant::fence_in_second_call)) at.write_fence(held->fence, held->claim->fence_block);
  note(step, at, spi::event_kind::released, *held->claim, &*held);
  return spi::departure::was_holder;
}

spi::renewal ledger::renew(spi::server_time now, const spi::claim& claim, process_id process,
                           effects& out) {
  tombstones_.drop_ended(now);
  spi::renewal answer;
  answer.at = now;
  answer.state = spi::hold_state::lost;
  const moment step{now, out, process, &claim.id};
  if (mutated(mutant::renewal_creates)) create_by_renewal(step, claim);
  resource* at = known(claim.resource);
  if (at == nullptr) return answer;
  promote(step, *at);
  if (const holders::entry* found = at->holders.find(claim.id)) {
    const hold& held = found->value;
    const bool counts_anew = held.claim->renewed && !held.revoked;
    answer.state = counts_anew ? spi::hold_state::renewed : spi::hold_state::held;
    answer.grant = prolong(step, *at, claim.id);
    // The push may have been lost; the protection goes on until the lease ends.
    if (held.revoked) tell_gone(step, held, revoked);
    note(step, *at, spi::event_kind::renewed, *held.claim, &held);
  } else if (at->line.find(claim.id) != nullptr) {
    keep_place(step, *at, claim.id);
    answer.state = spi::hold_state::waiting;
    answer.recheck_after = recheck_after(step, *at, claim.id);
  }
  return answer;
}

result<spi::granted> ledger::change(spi::server_time now, const spi::claim& claim, spi::mode to,
                                    process_id process, effects& out) {
  tombstones_.drop_ended(now);
  resource* at = known(claim.resource);
  const moment step{now, out, process, nullptr};
  if (at != nullptr) promote(step, *at);
  const holders::entry* found = at == nullptr ? nullptr : at->holders.find(claim.id);
  if (found == nullptr) return failure(errc::lost, "not held any more");
  const hold& held = found->value;
  if (to == spi::mode::permit || held.mode == spi::mode::permit) {
    return failure(errc::invalid, "a semaphore's permits have no other mode");
  }
  if (held.mode == to) return prolong(step, *at, claim.id);
  const spi::claim_ptr kept = held.claim;
  // An upgrade never waits: two readers that did would wait for each other.
  if (to == spi::mode::exclusive && at->holders.size() > 1) {
    return failure(errc::would_deadlock, "other readers hold it");
  }
  if (to == spi::mode::exclusive && at->is_blocked(now)) {
    return failure(errc::would_deadlock, "another reader's hold ended abnormally");
  }
  if (to == spi::mode::shared && mutated(mutant::writer_let_in_on_downgrade)) {
    const holders::entry before = *found;
    at->holders.remove(claim.id);
    promote(step, *at);
    at->holders.add(before.value, before.end);
  }
  at->holders.set_mode(claim.id, to, at->next_fence(kept->fence_block));
  note(step, *at, spi::event_kind::granted, *kept, &at->holders.find(claim.id)->value);
  promote(step, *at);
  return prolong(step, *at, claim.id);
}

result<spi::granted> ledger::transfer(spi::server_time now, const spi::claim_id& from,
                                      const spi::claim_ptr& to, process_id process, on_leave then,
                                      effects& out) {
  tombstones_.drop_ended(now);
  resource* at = known(to->resource);
  const moment step{now, out, process, nullptr};
  // Not promoted yet: one that waits must not be granted on the way to another.
  if (at != nullptr) drop_ended(step, *at);
  const holders::entry* found = at == nullptr ? nullptr : at->holders.find(to->id);
  if (found == nullptr && at != nullptr && !tombstones_.contains(to->id)) {
    found = at->holders.find(from);
  }
  if (found == nullptr && mutated(mutant::adopted_twice) && at != nullptr && !at->holders.empty()) {
    found = at->holders.find(at->holders.begin()->first);
  }
  if (found == nullptr && mutated(mutant::adopted_after_its_end) && at != nullptr) {
    grant({now, out, process, &to->id}, *at, to, process);
    return granted_at(step, *at, to->id);
  }
  if (found == nullptr || found->value.revoked) {
    if (at != nullptr) promote(step, *at);
    return failure(errc::not_held, "not held any more");
  }
  hold given = found->value;
  const bool moves = given.claim->id != to->id;
  if (moves) {
    out.ended.push_back(given.claim->id);
    if (then == on_leave::remember) remember(now, *given.claim);
    note(step, *at, spi::event_kind::released, *given.claim, &given);
  }
  auto claim = std::make_shared<spi::claim>(*to);
  // What the engine granted stays what it is, whatever the new holder says of it.
  claim->permits = given.claim->permits;
  claim->max = given.claim->max;
  claim->lock_delay = given.claim->lock_delay;
  claim->fence_block = given.claim->fence_block;
  at->holders.remove(given.claim->id);
  given.claim = std::move(claim);
  given.process = process;
  given.offer = false;
  given.told = !at->line.empty();
  at->holders.add(given, after(now, to->ttl));
  note(step, *at, moves ? spi::event_kind::granted : spi::event_kind::renewed, *given.claim,
       &given);
  promote(step, *at);
  return granted_at(step, *at, to->id);
}

result<spi::latch_state> ledger::change_latch(spi::server_time now,
                                              const spi::resource_id& resource,
                                              const spi::latch_change& change, effects& out) {
  if (auto latch = check_latch(now, resource, out); !latch) {
    return tl::unexpected(std::move(latch.error()));
  }
  auto changed = latches_.change(now, resource, change);
  if (!changed) return tl::unexpected(std::move(changed.error()));
  if (changed->counted) out.latches.push_back(resource);
  return changed->state;
}

result<spi::latch_state> ledger::read_latch(spi::server_time now, const spi::resource_id& resource,
                                            effects& out) {
  if (auto latch = check_latch(now, resource, out); !latch) {
    return tl::unexpected(std::move(latch.error()));
  }
  return latches_.read(now, resource);
}

result<void> ledger::check_latch(spi::server_time now, const spi::resource_id& resource,
                                 effects& out) {
  memory::resource* at = known(resource);
  if (at == nullptr) return {};
  promote(moment{now, out, std::nullopt, nullptr}, *at);
  if (at->idle()) return {};
  return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
}

void ledger::settle(spi::server_time now, effects& out) {
  for (auto& [id, at] : resources_) promote(moment{now, out, std::nullopt, nullptr}, at);
}

bool ledger::empty() const {
  return std::all_of(resources_.begin(), resources_.end(),
                     [](const auto& each) { return each.second.idle(); });
}

void ledger::keep_place(const moment& step, resource& at, const spi::claim_id& id) {
  if (mutated(mutant::live_waiter_removed)) return;
  at.line.refresh(id, *step.process, step.now, after(step.now, waiter_lease()));
}

void ledger::remember(spi::server_time now, const spi::claim& claim) {
  tombstones_.put(claim.id, after(after(now, claim.ttl), rules_.tombstone_extra), {});
}

// For the mutant renewal_creates: what a server does that sets the key instead of prolonging it.
void ledger::create_by_renewal(const moment& step, const spi::claim& claim) {
  resource& at = place_of(step.now, claim.resource);
  promote(step, at);
  if (!at.holders.empty() || at.line.find(claim.id) != nullptr) return;
  grant(step, at, std::make_shared<const spi::claim>(claim), *step.process);
}

resource* ledger::known(const spi::resource_id& id) {
  const auto found = resources_.find(id);
  return found == resources_.end() ? nullptr : &found->second;
}

resource& ledger::place_of(spi::server_time now, const spi::resource_id& id) {
  if (resource* found = known(id)) return *found;
  if (resources_.size() >= next_sweep_) sweep(now);
  return resources_.try_emplace(id, id, fence_floor_).first->second;
}

// Forgets resources of which only the fence is left. Their next fences start above all that were
// ever given there, so forgetting keeps the order.
void ledger::sweep(spi::server_time now) {
  for (auto each = resources_.begin(); each != resources_.end();) {
    if (!each->second.idle() || each->second.is_blocked(now)) {
      ++each;
      continue;
    }
    fence_floor_ = std::max(fence_floor_, each->second.last_fence());
    each = resources_.erase(each);
  }
  next_sweep_ = std::max(rules_.idle_limit, 2 * resources_.size());
}

}  // namespace holdfast::memory
