// What people see and do: who holds and who waits, and the two ways to take a hold away.
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

namespace {

spi::holder described(const holders::entry& held, spi::server_time now) {
  spi::holder holder;
  holder.claim = spi::public_id(held.value.claim->id);
  holder.mode = held.value.mode;
  holder.permits = held.value.claim->permits;
  holder.fence = held.value.fence;
  holder.remaining = held.end - now;
  holder.held_for = now - held.value.since;
  holder.payload = held.value.claim->payload;
  return holder;
}

spi::waiting described(const waiter& waiter, spi::server_time now) {
  spi::waiting waiting;
  waiting.claim = spi::public_id(waiter.claim->id);
  waiting.mode = waiter.claim->mode;
  waiting.permits = waiter.claim->permits;
  waiting.waiting_for = now - waiter.since;
  waiting.payload = waiter.claim->payload;
  return waiting;
}

}  // namespace

spi::resource_state ledger::inspect(spi::server_time now, const spi::resource_id& resource,
                                    effects& out) {
  memory::resource* at = known(resource);
  if (at == nullptr) return {};
  promote(moment{now, out, std::nullopt, nullptr}, *at);
  spi::resource_state state;
  for (const auto& [id, held] : at->holders) state.holders.push_back(described(held, now));
  std::sort(state.holders.begin(), state.holders.end(),
            [](const auto& left, const auto& right) { return left.fence < right.fence; });
  for (const auto& [sequence_number, entry] : at->line) {
    state.waiters.push_back(described(entry.value, now));
  }
  state.blocked_for = at->blocked_for(now);
  return state;
}

std::vector<spi::resource_summary> ledger::list(spi::server_time now, const std::string& space,
                                                const std::string& prefix, effects& out) {
  std::vector<spi::resource_summary> found;
  for (auto each = resources_.lower_bound({space, prefix}); each != resources_.end(); ++each) {
    const auto& [id, at] = *each;
    if (id.space != space || !id.name.starts_with(prefix)) break;
    promote(moment{now, out, std::nullopt, nullptr}, each->second);
    if (at.idle() && !at.is_blocked(now)) continue;
    found.push_back({id.name, at.holders.size(), at.line.size(), at.blocked_for(now)});
  }
  return found;
}

std::vector<spi::holder> ledger::revoke(spi::server_time now, const spi::resource_id& resource,
                                        spi::revocation how, const std::string& claim,
                                        effects& out) {
  memory::resource* at = known(resource);
  if (at == nullptr) return {};
  const moment step{now, out, std::nullopt, nullptr};
  promote(step, *at);
  std::vector<spi::holder> taken;
  std::vector<hold> holds;
  for (const auto& [id, held] : at->holders) {
    spi::holder holder = described(held, now);
    if (!claim.empty() && claim != holder.claim) continue;
    taken.push_back(std::move(holder));
    holds.push_back(held.value);
  }
  for (const hold& held : holds) {
    if (how == spi::revocation::force) {
      at->holders.remove(held.claim->id);
      step.out.ended.push_back(held.claim->id);
      tell_gone(step, held, "released by force");
      note(step, *at, spi::event_kind::forced, *held.claim, &held);
    } else {
      at->holders.revoke(held.claim->id);
      tell_gone(step, held, revoked);
    }
  }
  promote(step, *at);
  return taken;
}

void ledger::tell_gone(const moment& step, const hold& held, const char* why) {
  step.out.pushes.push_back(
      {push::kind::gone, held.claim->id, held.process, std::nullopt, {errc::lost, why}});
}

}  // namespace holdfast::memory
