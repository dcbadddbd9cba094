// The ledger as one member of a quorum: the fence of a vote, its conditional write-back, and how
// long the word of a member does not count that lost its state.
#include "core/mutant.hpp"
#include "stores/memory/ledger.hpp"

#include <algorithm>
#include <chrono>

namespace holdfast::memory {

namespace {

std::uint64_t microseconds(duration time) noexcept {
  const auto count = std::chrono::floor<std::chrono::microseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

}  // namespace

// A vote is near this clock on both sides: not above it, or one client's proposal would push the fences
// of all ahead; not below it, or a member that forgot its last fence could repeat it.
fence_token ledger::fence_for(const moment& step, resource& at, const spi::claim& claim) const {
  if (!claim.proposed_fence) return at.next_fence(claim.fence_block);
  const duration now = step.now.time_since_epoch();
  const std::uint64_t own = std::max(at.last_fence() + 1, microseconds(now));
  const std::uint64_t proposed = *claim.proposed_fence;
  const bool fits = proposed > at.last_fence() &&
                    proposed >= microseconds(now - rules_.fence_slack) &&
                    proposed <= microseconds(now + rules_.fence_slack);
  const fence_token fence(fits ? proposed : own);
  at.write_fence(fence, claim.fence_block);
  return fence;
}

duration ledger::counts_after(spi::server_time now, const spi::claim& claim) const noexcept {
  if (!claim.proposed_fence || !born_ || rules_.longest_ttl == duration{0}) return duration{0};
  const spi::server_time counts = after(*born_, rules_.longest_ttl);
  return counts <= now ? duration{0} : counts - now;
}

result<spi::granted> ledger::raise(spi::server_time now, const spi::claim& claim, fence_token fence,
                                   process_id process, effects& out) {
  tombstones_.drop_ended(now);
  const moment step{now, out, process, &claim.id};
  resource* at = known(claim.resource);
  if (at != nullptr) promote(step, *at);
  if (at == nullptr || at->holders.find(claim.id) == nullptr) {
    if (core::mutated(core::mutant::quorum_fence_written_back_anywhere)) {
      place_of(now, claim.resource).write_fence(fence, claim.fence_block);
      return spi::granted{.fence = fence, .ttl = claim.ttl, .at = now};
    }
    return failure(errc::lost, "not held here");
  }
  at->write_fence(fence, claim.fence_block);
  at->holders.raise(claim.id, fence);
  return prolong(step, *at, claim.id);
}

}  // namespace holdfast::memory
