// The verbs as one server's clock and table of resources see them.
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::memory {

using ledgers::entry;
using ledgers::moment;
using ledgers::never;

namespace {

// Every resource of this ledger is one of these.
resource& tables_of(ledgers::resource& at) { return static_cast<resource&>(at); }
const resource& tables_of(const ledgers::resource& at) { return static_cast<const resource&>(at); }

}  // namespace

ledger::ledger(memory::rules rules, reachability reachable, std::uint64_t fence_floor)
    : book(rules, std::move(reachable)),
      first_fence_after_(fence_floor),
      next_sweep_(rules.idle_limit) {}

result<spi::outcome> ledger::attempt(spi::server_time now, const spi::claim_ptr& claim,
                                     process_id process, std::optional<spi::server_time> not_after,
                                     effects& out) {
  tombstones_.drop_ended(now);
  return book::attempt({.now = now, .out = out, .self = process, .claim = &claim->id}, *claim,
                       not_after);
}

spi::departure ledger::leave(spi::server_time now, const spi::claim& claim, process_id process,
                             on_leave then, effects& out) {
  tombstones_.drop_ended(now);
  return book::leave({.now = now, .out = out, .self = process, .then = then}, claim);
}

spi::renewal ledger::renew(spi::server_time now, const spi::claim& claim, process_id process,
                           effects& out) {
  tombstones_.drop_ended(now);
  return book::renew({.now = now, .out = out, .self = process, .claim = &claim.id}, claim);
}

result<spi::granted> ledger::change(spi::server_time now, const spi::claim& claim, spi::mode to,
                                    process_id process, effects& out) {
  tombstones_.drop_ended(now);
  return book::change({.now = now, .out = out, .self = process}, claim, to);
}

result<spi::granted> ledger::transfer(spi::server_time now, const spi::claim_id& from,
                                      const spi::claim_ptr& to, process_id process, on_leave then,
                                      effects& out) {
  tombstones_.drop_ended(now);
  return book::transfer({.now = now, .out = out, .self = process, .then = then}, from, *to);
}

result<spi::granted> ledger::raise(spi::server_time now, const spi::claim& claim, fence_token fence,
                                   process_id process, effects& out) {
  tombstones_.drop_ended(now);
  return book::raise({.now = now, .out = out, .self = process, .claim = &claim.id}, claim, fence);
}

std::vector<spi::holder> ledger::revoke(spi::server_time now, const spi::resource_id& resource,
                                        spi::revocation how, const std::string& claim,
                                        effects& out) {
  return book::revoke({.now = now, .out = out}, resource, how, claim);
}

result<spi::latch_state> ledger::change_latch(spi::server_time now,
                                              const spi::resource_id& resource,
                                              const spi::latch_change& change, effects& out) {
  return book::change_latch({.now = now, .out = out}, resource, change);
}

result<spi::latch_state> ledger::read_latch(spi::server_time now, const spi::resource_id& resource,
                                            effects& out) {
  ledgers::resource* at = find(resource);
  if (at == nullptr) return spi::latch_state{};
  const moment step{.now = now, .out = out};
  promote(step, *at);
  return book::read_latch(step, *at);
}

spi::resource_state ledger::inspect(spi::server_time now, const spi::resource_id& resource,
                                    effects& out) {
  const auto found = resources_.find(resource);
  if (found == resources_.end()) return {};
  memory::resource& at = found->second;
  promote({.now = now, .out = out}, at);
  spi::resource_state state;
  for (const auto& [id, each] : at.held) {
    state.holders.push_back(ledgers::described_holder(each.value, now));
  }
  std::sort(state.holders.begin(), state.holders.end(),
            [](const auto& left, const auto& right) { return left.fence < right.fence; });
  for (const auto& [place, each] : at.line) {
    state.waiters.push_back(ledgers::described_waiter(each.value, now));
  }
  if (at.is_blocked(now)) state.blocked_for = at.blocked_until - now;
  return state;
}

std::vector<spi::resource_summary> ledger::list(spi::server_time now, const std::string& space,
                                                const std::string& prefix, effects& out) {
  std::vector<spi::resource_summary> found;
  for (auto each = resources_.lower_bound({space, prefix}); each != resources_.end(); ++each) {
    const auto& [id, at] = *each;
    if (id.space != space || !id.name.starts_with(prefix)) break;
    promote({.now = now, .out = out}, each->second);
    if (at.unused() && !at.is_blocked(now)) continue;
    found.push_back({id.name, at.holders, at.waiting, std::nullopt});
    if (at.is_blocked(now)) found.back().blocked_for = at.blocked_until - now;
  }
  return found;
}

void ledger::settle(spi::server_time now, effects& out) {
  for (auto& [id, at] : resources_) promote({.now = now, .out = out}, at);
}

bool ledger::empty() const {
  return std::all_of(resources_.begin(), resources_.end(),
                     [](const auto& each) { return each.second.unused(); });
}

// --- the tables, which know no rules -------------------------------------------------------------

ledgers::resource* ledger::find(const spi::resource_id& id) {
  const auto found = resources_.find(id);
  return found == resources_.end() ? nullptr : &found->second;
}

ledgers::resource& ledger::make(const spi::resource_id& id, spi::server_time now) {
  if (resources_.size() >= next_sweep_) sweep(now);
  resource& made = resources_.try_emplace(id, id).first->second;
  made.last = first_fence_after_;
  return made;
}

// Forgets resources of which only the fence is left. Their next fences start above all that were
// ever given to them, so forgetting keeps the order.
void ledger::sweep(spi::server_time now) {
  for (auto each = resources_.begin(); each != resources_.end();) {
    const resource& at = each->second;
    const bool is_latch = at.kind == ledgers::kind::latch && at.next_end > now;
    if (!at.unused() || at.is_blocked(now) || is_latch) {
      ++each;
      continue;
    }
    first_fence_after_ = std::max(first_fence_after_, at.last);
    each = resources_.erase(each);
  }
  next_sweep_ = std::max(rules_.idle_limit, 2 * resources_.size());
}

void ledger::remember(const spi::claim_id& id, spi::server_time until) {
  tombstones_.put(id, until, {});
}

spi::resource_id ledger::id_of(const ledgers::resource& at) const { return tables_of(at).id; }

std::optional<entry> ledger::holder(const moment&, ledgers::resource& at, const spi::claim_id& id) {
  const auto* found = tables_of(at).held.find(id);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::optional<entry> ledger::waiter(const moment&, ledgers::resource& at, const spi::claim_id& id) {
  const resource& own = tables_of(at);
  const auto found = own.places.find(id);
  if (found == own.places.end()) return std::nullopt;
  return own.line.find(found->second)->value;
}

std::vector<entry> ledger::holders(const ledgers::resource& at, std::size_t limit) {
  std::vector<entry> all;
  for (const auto& [id, each] : tables_of(at).held) {
    if (all.size() == limit) break;
    all.push_back(each.value);
  }
  return all;
}

std::vector<entry> ledger::ended_holders(ledgers::resource& at, spi::server_time now) {
  return tables_of(at).held.ended(now);
}

std::vector<entry> ledger::ended_waiters(ledgers::resource& at, spi::server_time now) {
  return tables_of(at).line.ended(now);
}

std::vector<entry> ledger::holders_to_tell(ledgers::resource& at) {
  std::vector<entry> all;
  resource& own = tables_of(at);
  if (own.untold == 0) return all;
  for (const auto& [id, each] : own.held) {
    if (!each.value.told) all.push_back(each.value);
  }
  for (const entry& each : all) mark_told(at, each);
  return all;
}

void ledger::mark_told(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  auto* found = own.held.find(row.id);
  if (found == nullptr || std::exchange(found->value.told, true)) return;
  --own.untold;
}

const entry* ledger::next_waiter(ledgers::resource& at, std::int64_t place) {
  const auto& line = tables_of(at).line;
  const auto found = line.upper_bound(place);
  return found == line.end() ? nullptr : &found->second.value;
}

const entry* ledger::previous_waiter(ledgers::resource& at, std::int64_t place) {
  const auto& line = tables_of(at).line;
  const auto found = line.lower_bound(place);
  return found == line.begin() ? nullptr : &std::prev(found)->second.value;
}

std::int64_t ledger::next_place(ledgers::resource& at) { return ++tables_of(at).last_place; }

void ledger::put_holder(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  if (!row.told) ++own.untold;
  own.held.put(row.id, row.ends, row);
  at.next_end = own.held.earliest_end().value_or(never);
}

void ledger::erase_holder(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  const auto erased = own.held.take(row.id);
  if (erased && !erased->told) --own.untold;
  at.next_end = own.held.earliest_end().value_or(never);
}

void ledger::replace_holder(ledgers::resource& at, const entry& before, const entry& now) {
  resource& own = tables_of(at);
  auto* found = own.held.find(before.id);
  if (before.id != now.id || found == nullptr) {
    erase_holder(at, before);
    return put_holder(at, now);
  }
  if (found->value.told && !now.told) ++own.untold;
  if (!found->value.told && now.told) --own.untold;
  found->value = now;
  own.held.set_end(now.id, now.ends);
  at.next_end = own.held.earliest_end().value_or(never);
}

void ledger::put_waiter(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  own.places.emplace(row.id, row.place);
  own.line.put(row.place, row.ends, row);
}

void ledger::erase_waiter(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  own.places.erase(row.id);
  own.line.erase(row.place);
}

void ledger::refresh_waiter(ledgers::resource& at, const entry& row) {
  resource& own = tables_of(at);
  own.line.find(row.place)->value = row;
  own.line.set_end(row.place, row.ends);
}

bool ledger::tell_free(ledgers::resource& at, const entry& waiting) {
  if (waiting.told) return false;
  resource& own = tables_of(at);
  own.line.find(waiting.place)->value.told = true;
  own.told_free = waiting.id;
  return true;
}

void ledger::taken(ledgers::resource& at) {
  resource& own = tables_of(at);
  if (!own.told_free) return;
  const auto found = own.places.find(*own.told_free);
  if (found != own.places.end()) own.line.find(found->second)->value.told = false;
  own.told_free.reset();
}

// The k-th waiter comes k steps later.
duration ledger::recheck_after(const moment& step, ledgers::resource& at, const entry& row,
                               bool queued) {
  spi::server_time end = after(step.now, rules_.hand_over_after);
  if (at.holders > 0) end = at.next_end;
  if (at.is_blocked(step.now)) end = at.blocked_until;
  if (!queued) return end - step.now;
  duration stagger{0};
  for (const auto& [place, each] : tables_of(at).line) {
    if (place == row.place || stagger >= rules_.stagger_limit) break;
    stagger += rules_.stagger;
  }
  return end - step.now + std::min(stagger, rules_.stagger_limit);
}

std::uint32_t ledger::latch_count(const ledgers::resource& at) { return tables_of(at).latch_count; }

void ledger::set_latch(ledgers::resource& at, std::uint32_t count, duration) {
  tables_of(at).latch_count = count;
}

void ledger::erase_latch(ledgers::resource& at) { tables_of(at).latch_changes = {}; }

bool ledger::latch_counted(const ledgers::resource& at, const spi::claim_id& id,
                           spi::server_time now) {
  const auto* found = tables_of(at).latch_changes.find(id);
  return found != nullptr && found->end > now;
}

void ledger::remember_latch_change(ledgers::resource& at, const spi::claim_id& id,
                                   spi::server_time until) {
  tables_of(at).latch_changes.put(id, until, {});
}

void ledger::end_latch_count(ledgers::resource& at, spi::server_time until) {
  auto& changes = tables_of(at).latch_changes;
  std::vector<spi::claim_id> counted;
  for (const auto& [id, each] : changes) {
    if (each.end == never) counted.push_back(id);
  }
  for (const spi::claim_id& id : counted) changes.set_end(id, until);
}

void ledger::forget_latch_changes(ledgers::resource& at, spi::server_time now) {
  tables_of(at).latch_changes.drop_ended(now);
}

}  // namespace holdfast::memory
