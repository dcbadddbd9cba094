// What the ledger answers to a claim: where it stands, what is in its way, when to ask again.
#include "core/mutant.hpp"
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

using core::mutant;
using core::mutated;

spi::granted ledger::granted_at(const moment& step, const resource& at,
                                const spi::claim_id& id) const {
  const holders::entry& held = *at.holders.find(id);
  spi::granted grant;
  grant.fence = held.value.fence;
  grant.ttl = held.end - step.now;
  if (held.value.offer) grant.ttl = std::min(grant.ttl, rules_.offer);
  grant.at = step.now;
  grant.offer = held.value.offer;
  grant.wanted = !at.line.empty();
  grant.counts_after = counts_after(step.now, *held.value.claim);
  return grant;
}

// The holder was heard: an offer becomes a lease, once; a lease that is renewed counts again.
spi::granted ledger::prolong(const moment& step, resource& at, const spi::claim_id& id) {
  const hold& held = at.holders.find(id)->value;
  const spi::claim& claim = *held.claim;
  if (step.process) at.holders.set_process(id, *step.process);
  if (mutated(mutant::fence_in_second_call)) at.write_fence(held.fence, claim.fence_block);
  if (!held.revoked && (held.offer || claim.renewed)) {
    at.holders.complete(id);
    at.holders.set_end(id, after(step.now, claim.ttl));
  }
  return granted_at(step, at, id);
}

spi::blocked ledger::blocked_at(const moment& step, const resource& at,
                                const spi::claim_id& id) const {
  spi::blocked answer;
  answer.queued = at.line.find(id) != nullptr;
  answer.recheck_after = recheck_after(step, at, id);
  answer.at = step.now;
  if (at.is_blocked(step.now)) {
    answer.blocker = "the lock delay of a holder that ended abnormally";
  } else if (!at.holders.empty()) {
    answer.blocker = at.holders.begin()->second.value.claim->payload;
  } else if (!at.line.empty() && at.line.begin()->second.value.claim->id != id) {
    answer.blocker = at.line.begin()->second.value.claim->payload;
  }
  return answer;
}

duration ledger::recheck_after(const moment& step, const resource& at,
                               const spi::claim_id& id) const {
  const auto end = at.next_end(step.now);
  duration wait = end ? *end - step.now : rules_.hand_over_after;
  if (at.line.find(id) == nullptr) return wait;
  const auto places = static_cast<std::size_t>(rules_.stagger_limit / rules_.stagger);
  const std::size_t place = at.line.place(id, places);
  return wait + std::min(rules_.stagger * static_cast<duration::rep>(place), rules_.stagger_limit);
}

void ledger::note(const moment& step, const resource& at, spi::event_kind kind,
                  const spi::claim& claim, const hold* held) {
  if (!step.out.observed) return;
  spi::store_event event;
  event.kind = kind;
  event.name = at.id().name;
  event.claim = spi::public_id(claim.id);
  event.mode = held != nullptr ? held->mode : claim.mode;
  if (held != nullptr) event.fence = held->fence;
  event.payload = claim.payload;
  step.out.events.push_back({at.id(), std::move(event)});
}

}  // namespace holdfast::memory
