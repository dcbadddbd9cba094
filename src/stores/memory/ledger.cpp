// The verbs as one server's clock and table of resources see them.
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

using ledgers::moment;

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
// ever given there, so forgetting keeps the order.
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

}  // namespace holdfast::memory
