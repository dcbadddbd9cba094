// How a resource passes from one to the next: what has ended goes out, who is next comes in.
#include "core/mutant.hpp"
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

using core::mutant;
using core::mutated;

void ledger::promote(const moment& step, resource& at) {
  drop_ended(step, at);
  if (at.line.empty() || at.closed(step.now)) return;
  std::vector<spi::claim_id> offered;
  bool handing_over = false;
  for (std::size_t grants = 0; grants < rules_.promote_limit; ++grants) {
    const waiter* next = next_in_line(step, at);
    if (next == nullptr || !at.free_for(*next->claim, step.now)) break;
    const spi::claim_ptr claim = next->claim;
    const process_id process = next->process;
    // Asked once: a release that lets in one reader lets in all up to the next writer.
    handing_over = handing_over || hands_over(step, at, *next);
    if (!handing_over) {
      if (!next->told_free) {
        at.line.tell_free(claim->id);
        step.out.pushes.push_back({push::kind::freed, claim->id, process, std::nullopt, {}});
      }
      break;
    }
    grant(step, at, claim, process);
    if (at.holders.find(claim->id)->value.offer) offered.push_back(claim->id);
  }
  announce(step, at, offered);
}

void ledger::drop_ended(const moment& step, resource& at) {
  while (auto ended = at.holders.take_ended(step.now)) {
    const auto& [held, end] = *ended;
    // Nobody said goodbye: it may be at work still, and where no fence is checked only time helps.
    if (held.claim->lock_delay > duration{0}) at.block_until(after(end, held.claim->lock_delay));
    if (held.offer && !held.revoked) at.silence(held.since);
    step.out.ended.push_back(held.claim->id);
    note(step, at, spi::event_kind::expired, *held.claim, &held);
  }
  if (mutated(mutant::dead_waiter_kept)) return;
  while (auto dead = at.line.take_dead(step.now)) {
    step.out.ended.push_back(dead->claim->id);
    note(step, at, spi::event_kind::withdrawn, *dead->claim);
  }
}

const waiter* ledger::next_in_line(const moment& step, const resource& at) const {
  if (mutated(mutant::fair_served_last_first)) {
    for (auto each = at.line.rbegin(); each != at.line.rend(); ++each) {
      if (eligible(step, at, each->second.value)) return &each->second.value;
    }
    return nullptr;
  }
  for (const auto& [sequence_number, entry] : at.line) {
    if (eligible(step, at, entry.value)) return &entry.value;
  }
  return nullptr;
}

// Who speaks can be granted by the answer, subscription or not; if it cannot be granted, it must not
// keep others waiting who can be reached.
bool ledger::eligible(const moment& step, const resource& at, const waiter& waiting) const {
  const bool speaks = step.claim != nullptr && *step.claim == waiting.claim->id;
  if (speaks && at.free_for(*waiting.claim, step.now)) return true;
  const bool silent = at.is_silent(waiting) && !mutated(mutant::silent_waiter_offered);
  if (!speaks && silent) return false;
  return !reachable_ || reachable_(waiting.process);
}

// Strict hand-over among two processes that take turns halves their throughput: the one that
// releases may not take it again although it is there and the other must be woken first. So a lone
// unfair waiter is only told, and gets it for certain once it has waited a little.
bool ledger::hands_over(const moment& step, const resource& at, const waiter& next) const {
  if (step.claim != nullptr && *step.claim == next.claim->id) return true;
  if (next.claim->fair || at.line.size() >= 2) return true;
  return step.now - next.since > rules_.hand_over_after;
}

bool ledger::may_take(const moment& step, const resource& at, const spi::claim& newcomer) const {
  if (!at.free_for(newcomer, step.now)) return false;
  for (const auto& [sequence_number, entry] : at.line) {
    const waiter& earlier = entry.value;
    if (!eligible(step, at, earlier)) continue;
    if (newcomer.fair || earlier.claim->fair) return false;
    // Readers that come one after the other would keep a writer out forever.
    if (newcomer.mode == spi::mode::shared && earlier.claim->mode == spi::mode::exclusive) {
      return false;
    }
  }
  return true;
}

void ledger::grant(const moment& step, resource& at, const spi::claim_ptr& claim,
                   process_id process) {
  at.line.remove(claim->id);
  at.line.taken();
  hold granted;
  granted.claim = claim;
  granted.process = process;
  granted.mode = claim->mode;
  granted.fence = fence_for(step, at, *claim);
  granted.since = step.now;
  granted.offer = step.claim == nullptr || *step.claim != claim->id;
  granted.told = !granted.offer && !at.line.empty();
  spi::server_time end =
      after(step.now, granted.offer ? std::min(claim->ttl, rules_.offer) : claim->ttl);
  if (granted.offer && mutated(mutant::offer_never_ends)) end = spi::server_time::max();
  note(step, at, spi::event_kind::granted, *claim, &granted);
  at.holders.add(std::move(granted), end);
}

// After the last grant of a step, so that `wanted` does not count those who got in with it.
void ledger::announce(const moment& step, resource& at,
                      const std::vector<spi::claim_id>& offered) const {
  for (const spi::claim_id& id : offered) {
    if (!at.line.empty()) at.holders.mark_told(id);
    step.out.pushes.push_back({push::kind::granted,
                               id,
                               at.holders.find(id)->value.process,
                               granted_at(step, at, id),
                               {}});
  }
}

duration ledger::waiter_lease() const noexcept {
  return mutated(mutant::live_waiter_removed) ? rules_.waiter_lease / 10 : rules_.waiter_lease;
}

}  // namespace holdfast::memory
