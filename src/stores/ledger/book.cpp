// The verbs.
#include "stores/ledger/book.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::ledgers {

using core::mutant;
using core::mutated;

bool book::impossible(const spi::claim& claim) noexcept {
  return claim.mode == spi::mode::permit && (claim.permits == 0 || claim.permits > claim.max);
}

void book::begin_use(resource& at, const spi::claim& claim) noexcept {
  const bool semaphore = claim.mode == spi::mode::permit;
  at.kind = semaphore ? kind::semaphore : kind::lock;
  at.max = semaphore ? claim.max : 0;
}

entry book::entry_of(const moment& step, const spi::claim& claim, std::int64_t place) {
  entry row;
  row.id = claim.id;
  row.place = place;
  row.process = step.self;
  row.since = step.now;
  row.heard = step.now;
  row.ttl = claim.ttl;
  row.lock_delay = claim.lock_delay;
  row.permits = claim.permits;
  row.fence_block = claim.fence_block;
  row.mode = claim.mode;
  row.fair = claim.fair;
  row.renewed = claim.renewed;
  row.proposed_fence = claim.proposed_fence;
  row.payload = claim.payload;
  return row;
}

// ok, or why this claim is not possible on this resource now: name_conflict (a lock is no
// semaphore), conflict (another max), invalid (more permits than there are).
result<void> book::accepts(const resource& at, const spi::claim& claim) const {
  if (at.kind == kind::latch) return failure(errc::name_conflict, "the name is in use as a latch");
  if (impossible(claim)) {
    return failure(errc::invalid,
                   std::to_string(claim.permits) + " permits of " + std::to_string(claim.max));
  }
  if (at.unused()) return {};
  const bool semaphore = claim.mode == spi::mode::permit;
  if (semaphore != (at.kind == kind::semaphore)) {
    return failure(errc::name_conflict, semaphore ? "the name is in use as a lock"
                                                  : "the name is in use as a semaphore");
  }
  if (semaphore && at.max != claim.max) {
    return failure(errc::conflict, "max is " + std::to_string(at.max) + " there and " +
                                       std::to_string(claim.max) + " here");
  }
  if (std::max(at.holders, at.waiting) >= rules_.claim_limit) {
    return failure(errc::overloaded, "claims on one name");
  }
  return {};
}

result<spi::outcome> book::attempt(const moment& step, const spi::claim& claim,
                                   std::optional<spi::server_time> not_after) {
  if (claim.proposed_fence && !born_) born_ = step.now;
  resource* known = find(claim.resource);
  if (known == nullptr && impossible(claim)) {
    return tl::unexpected(std::move(accepts({}, claim).error()));
  }
  resource& at = known != nullptr ? *known : make(claim.resource, step.now);
  auto answer = attempt_at(step, at, claim, not_after);
  save(step, at);
  return answer;
}

result<spi::outcome> book::attempt_at(const moment& step, resource& at, const spi::claim& claim,
                                      std::optional<spi::server_time> not_after) {
  end_latch(step, at);
  promote(step, at);
  if (const auto held = holder(step, at, claim.id)) {
    return granted_to(step, at, prolong(step, at, *held));
  }
  if (const auto waiting = waiter(step, at, claim.id)) {
    keep_place(step, at, *waiting);
    return blocked_at(step, at, *waiting, true);
  }
  if (step.place != nullptr) *step.place = nowhere;  // if it was taken away, it queues again
  if (!mutated(mutant::late_duplicate_revives)) {
    if (left_before(claim.id)) return failure(errc::lost, "left before");
    if (not_after && step.now > *not_after) return failure(errc::lost, "too late");
  }
  if (auto accepted = accepts(at, claim); !accepted) {
    return tl::unexpected(std::move(accepted.error()));
  }
  return place_claim(step, at, claim);
}

// A newcomer: granted, queued, or turned away.
spi::outcome book::place_claim(const moment& step, resource& at, const spi::claim& claim) {
  if (at.unused()) begin_use(at, claim);
  entry row = entry_of(step, claim, next_place(at));
  const bool fits = may_pass(step, at, row) && free_for(step, at, row);
  if (!fits && !claim.queued) return blocked_at(step, at, row, false);
  if (step.place != nullptr) *step.place = row.place;
  if (fits) return granted_to(step, at, grant(step, at, std::move(row)));
  row.ends = after(step.now, waiter_lease());
  add_waiter(at, row);
  note(step, at, spi::event_kind::queued, row, false);
  for (const entry& held : holders_to_tell(at)) tell(step, push::kind::wanted, held);
  // With one more waiter in the queue, a waiter that was only notified that the resource is
  // free may now be granted it.
  promote(step, at);
  if (const auto held = holder(step, at, row.id)) return granted_to(step, at, *held);
  return blocked_at(step, at, row, true);
}

spi::departure book::leave(const moment& step, const spi::claim& claim) {
  if (step.then == on_leave::remember) {
    remember(claim.id, after(after(step.now, claim.ttl), rules_.tombstone_extra));
  }
  resource* at = find(claim.resource);
  if (at == nullptr) return spi::departure::gone;
  // Not promoted yet: a leaving claim must not be granted on its way out.
  drop_ended(step, *at);
  bool was_head = false;
  const spi::departure left = remove(step, *at, claim.id, was_head);
  const std::uint32_t waiting = at->waiting;
  promote(step, *at);
  // The new head of the queue was watching the claim that left.
  if (was_head && at->waiting == waiting) wake_head(step, *at);
  save(step, *at);
  return left;
}

spi::departure book::remove(const moment& step, resource& at, const spi::claim_id& id,
                            bool& was_head) {
  auto held = holder(step, at, id);
  if (const auto waited = held ? std::nullopt : waiter(step, at, id)) {
    was_head = rules_.head_watches && previous_waiter(at, waited->place) == nullptr;
    withdraw(step, at, *waited);
    return spi::departure::was_waiting;
  }
  if (!held && mutated(mutant::release_without_owner_check) && at.holders > 0) {
    held = holders(at, 1).front();
  }
  if (!held) return spi::departure::gone;
  remove_holder(at, *held);
  if (mutated(mutant::fence_in_second_call)) write_fence(at, held->fence, held->fence_block);
  note(step, at, spi::event_kind::released, *held, true);
  return spi::departure::was_holder;
}

spi::renewal book::renew(const moment& step, const spi::claim& claim) {
  if (mutated(mutant::renewal_creates)) create_by_renewal(step, claim);
  spi::renewal answer;
  answer.at = step.now;
  answer.state = spi::hold_state::lost;
  resource* at = find(claim.resource);
  if (at == nullptr) return answer;
  promote(step, *at);
  if (const auto held = holder(step, *at, claim.id)) {
    answer = renewal_of(step, *at, prolong(step, *at, *held));
  } else if (const auto waiting = waiter(step, *at, claim.id)) {
    keep_place(step, *at, *waiting);
    answer.state = spi::hold_state::waiting;
    answer.recheck_after = recheck_after(step, *at, *waiting, true);
  }
  save(step, *at);
  return answer;
}

void book::keep_place(const moment& step, resource& at, entry row) {
  if (mutated(mutant::live_waiter_removed)) return;
  row.process = step.self;
  row.heard = step.now;
  row.ends = after(step.now, waiter_lease());
  refresh_waiter(at, row);
}

// For the mutant renewal_creates: what a server would do that sets the key
// instead of prolonging it.
void book::create_by_renewal(const moment& step, const spi::claim& claim) {
  resource* known = find(claim.resource);
  resource& at = known != nullptr ? *known : make(claim.resource, step.now);
  promote(step, at);
  if (at.holders > 0 || waiter(step, at, claim.id)) return;
  grant(step, at, entry_of(step, claim, next_place(at)));
}

result<spi::granted> book::change(const moment& step, const spi::claim& claim, spi::mode to) {
  resource* at = find(claim.resource);
  // Claims that can be granted are granted first: an upgrade does not overtake a reader that could
  // be granted.
  if (at != nullptr) promote(step, *at);
  const auto held = at != nullptr ? holder(step, *at, claim.id) : std::nullopt;
  result<spi::granted> answer = failure(errc::lost, "not held any more");
  if (held) answer = change_at(step, *at, *held, to);
  if (at != nullptr) save(step, *at);
  return answer;
}

result<spi::granted> book::change_at(const moment& step, resource& at, const entry& held,
                                     spi::mode to) {
  if (to == spi::mode::permit || held.mode == spi::mode::permit) {
    return failure(errc::invalid, "a semaphore's permits have no other mode");
  }
  if (held.mode == to) return granted_to(step, at, prolong(step, at, held));
  const bool upgrade = to == spi::mode::exclusive;
  if (upgrade && at.holders > 1) drop_dead_holders(step, at);
  // An upgrade never waits: two readers that did would wait for each other.
  if (upgrade && (at.holders > 1 || at.is_blocked(step.now))) {
    watch_holders(step, at);
    return failure(errc::would_deadlock, at.holders > 1 ? "other readers hold it"
                                                        : "another reader's hold ended abnormally");
  }
  if (!upgrade && mutated(mutant::writer_let_in_on_downgrade)) {
    remove_holder(at, held);
    promote(step, at);
    add_holder(at, held);
  }
  entry changed = held;
  changed.mode = to;
  changed.fence = next_fence(at, held.fence_block);
  change_holder(at, held, changed);
  note(step, at, spi::event_kind::granted, changed, true);
  promote(step, at);
  return granted_to(step, at, prolong(step, at, changed));
}

std::optional<entry> book::to_transfer(const moment& step, resource& at, const spi::claim_id& from,
                                       const spi::claim_id& to) {
  auto held = holder(step, at, to);
  if (!held && !left_before(to)) held = holder(step, at, from);
  if (!held && mutated(mutant::adopted_twice) && at.holders > 0) held = holders(at, 1).front();
  if (held && held->revoked) return std::nullopt;
  return held;
}

result<spi::granted> book::transfer(const moment& step, const spi::claim_id& from,
                                    const spi::claim& to) {
  resource* found = find(to.resource);
  const auto refused = failure(errc::not_held, "not held any more");
  if (found == nullptr) return refused;
  resource& at = *found;
  // Not promoted yet: a waiter must not be granted while it is being transferred to another claim.
  drop_ended(step, at);
  const auto held = to_transfer(step, at, from, to.id);
  if (!held && mutated(mutant::adopted_after_its_end)) {
    moment speaks = step;
    speaks.claim = &to.id;
    return granted_to(step, at, grant(speaks, at, entry_of(step, to, next_place(at))));
  }
  if (!held) {
    promote(step, at);
    save(step, at);
    return refused;
  }
  const bool moves = held->id != to.id;
  if (moves) {
    step.out.ended.emplace_back(held->process, held->id);
    if (step.then == on_leave::remember) {
      remember(held->id, after(after(step.now, held->ttl), rules_.tombstone_extra));
    }
    note(step, at, spi::event_kind::released, *held, true);
  }
  // The granted terms stay, whatever the new holder asks for.
  entry given = *held;
  given.id = to.id;
  // Its life must not depend on the client that handed it on.
  given.process = to.detached && !rules_.holds_are_leases ? nobody : step.self;
  given.ttl = to.ttl;
  given.renewed = to.renewed;
  given.proposed_fence = to.proposed_fence;
  given.payload = to.payload;
  given.offer = false;
  given.told = at.waiting > 0;
  set_end(given, step.now);
  change_holder(at, *held, given);
  note(step, at, moves ? spi::event_kind::granted : spi::event_kind::renewed, given, true);
  if (step.place != nullptr) *step.place = given.place;
  promote(step, at);
  // The head now watches another client, or only the clock.
  if (rules_.head_watches) wake_head(step, at);
  save(step, at);
  return granted_to(step, at, given);
}

// Only where the claim still holds: see spi::store::raise.
result<spi::granted> book::raise(const moment& step, const spi::claim& claim, fence_token fence) {
  resource* at = find(claim.resource);
  if (at != nullptr) promote(step, *at);
  auto held = at != nullptr ? holder(step, *at, claim.id) : std::nullopt;
  if (!held && mutated(mutant::quorum_fence_written_back_anywhere)) {
    write_fence(at != nullptr ? *at : make(claim.resource, step.now), fence.value(),
                claim.fence_block);
    return spi::granted{.fence = fence, .ttl = claim.ttl, .at = step.now};
  }
  if (!held) return failure(errc::lost, "not held here");
  write_fence(*at, fence.value(), claim.fence_block);
  entry raised = *held;
  raised.fence = std::max(held->fence, fence.value());
  change_holder(*at, *held, raised);
  const spi::granted answer = granted_to(step, *at, prolong(step, *at, raised));
  save(step, *at);
  return answer;
}

std::vector<spi::holder> book::revoke(const moment& step, const spi::resource_id& resource,
                                      spi::revocation how, const std::string& claim) {
  ledgers::resource* at = find(resource);
  if (at == nullptr) return {};
  promote(step, *at);
  drop_dead_holders(step, *at);
  std::vector<spi::holder> taken;
  for (const entry& row : holders(*at, rules_.claim_limit)) {
    spi::holder holder = described_holder(row, step.now);
    if (!claim.empty() && claim != holder.claim) continue;
    taken.push_back(std::move(holder));
    if (how == spi::revocation::force) {
      remove_holder(*at, row);
      step.out.ended.emplace_back(row.process, row.id);
      tell_gone(step, row, "released by force", {});
      note(step, *at, spi::event_kind::forced, row, true);
    } else {
      // From now on it ends by time, as if its last renewal had been now.
      entry ending = row;
      ending.ends = std::min(row.ends, after(step.now, row.ttl));
      ending.revoked = true;
      change_holder(*at, row, ending);
      tell_gone(step, row, revoked_text, ending.ends - step.now);
    }
  }
  const std::uint32_t waiting = at->waiting;
  promote(step, *at);
  // The head looks again: the end has changed.
  if (rules_.head_watches && !taken.empty() && at->waiting == waiting) wake_head(step, *at);
  save(step, *at);
  return taken;
}

// --- count-down latches: set, down, read. A latch lives a while after its last change, also at zero; then
// it is unset.

void book::end_latch(const moment& step, resource& at) {
  if (at.kind != kind::latch || at.next_end > step.now) return;
  erase_latch(at);
  at.kind = kind::idle;
  at.next_end = never;
  at.dirty = true;
}

result<spi::latch_state> book::change_latch(const moment& step, const spi::resource_id& resource,
                                            const spi::latch_change& change) {
  if (change.count == 0 || change.count > max_latch_count) {
    return failure(errc::invalid, "a latch counts from 1 to " + std::to_string(max_latch_count));
  }
  ledgers::resource* known = find(resource);
  if (known == nullptr && change.what == spi::latch_change::kind::down) {
    return failure(errc::not_held, "the latch is unset");
  }
  ledgers::resource& at = known != nullptr ? *known : make(resource, step.now);
  end_latch(step, at);
  promote(step, at);
  auto answer = count_latch(step, at, change);
  save(step, at);
  return answer;
}

// set: conflict unless unset or zero. down: not_held if unset; never below zero. Each id counts
// once; a repetition answers the count as it is now.
result<spi::latch_state> book::count_latch(const moment& step, resource& at,
                                           const spi::latch_change& change) {
  if (!at.unused()) {
    return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
  const bool sets = change.what == spi::latch_change::kind::set;
  const bool unset = at.kind != kind::latch;
  if (unset && !sets) return failure(errc::not_held, "the latch is unset");
  std::uint32_t count = unset ? 0 : latch_count(at);
  const bool counts_repeats = !sets && mutated(mutant::latch_counts_repeats);
  if (!unset && latch_counted(at, change.id, step.now) && !counts_repeats) {
    return spi::latch_state{count};
  }
  if (sets && count > 0) {
    return failure(errc::conflict, "the latch is set, its count is " + std::to_string(count));
  }
  // Ids of an earlier count are remembered for a while: a late repetition must not count towards
  // the next.
  const spi::server_time remembered = after(step.now, rules_.tombstone_extra);
  if (!sets && count == 0) {  // is not counted, nor towards the next count
    remember_latch_change(at, change.id, remembered);
    return spi::latch_state{0};
  }
  if (sets) end_latch_count(at, remembered);
  forget_latch_changes(at, step.now);
  remember_latch_change(at, change.id, never);
  count = sets ? change.count : count - std::min(count, change.count);
  const duration life = change.life > duration{0} ? change.life : rules_.latch_life;
  set_latch(at, count, life);
  at.kind = kind::latch;
  at.next_end = after(step.now, life);
  at.dirty = true;
  step.out.latches.push_back(id_of(at));
  return spi::latch_state{count};
}

result<spi::latch_state> book::read_latch(const moment& step, const resource& at) {
  if (!at.unused()) {
    return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
  if (at.kind != kind::latch || at.next_end <= step.now) return spi::latch_state{};
  return spi::latch_state{latch_count(at)};
}

}  // namespace holdfast::ledgers
