// The ledger's answers to a claim, its notifications to others, and its fences.
#include "core/mutant.hpp"
#include "stores/ledger/book.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::ledgers {

using core::mutant;
using core::mutated;

spi::holder described_holder(const entry& row, spi::server_time now) {
  spi::holder holder;
  holder.claim = spi::public_id(row.id);
  holder.mode = row.mode;
  holder.permits = row.permits;
  holder.fence = fence_token(row.fence);
  if (row.ends != never) holder.remaining = row.ends - now;
  holder.held_for = now - row.since;
  holder.payload = row.payload;
  return holder;
}

spi::waiting described_waiter(const entry& row, spi::server_time now) {
  spi::waiting waiting;
  waiting.claim = spi::public_id(row.id);
  waiting.mode = row.mode;
  waiting.permits = row.permits;
  waiting.waiting_for = now - row.since;
  waiting.payload = row.payload;
  return waiting;
}

spi::granted book::granted_to(const moment& step, const resource& at, const entry& row) const {
  spi::granted grant;
  grant.fence = fence_token(row.fence);
  grant.ttl = row.ends == never ? forever : std::max(duration{0}, row.ends - step.now);
  if (row.offer) grant.ttl = std::min(grant.ttl, rules_.offer);
  grant.at = step.now;
  grant.offer = row.offer;
  grant.wanted = at.waiting > 0;
  grant.counts_after = counts_after(step.now, row);
  return grant;
}

spi::renewal book::renewal_of(const moment& step, const resource& at, const entry& row) {
  spi::renewal answer;
  answer.at = step.now;
  const bool counts_again = row.renewed && !row.revoked;
  answer.state = counts_again ? spi::hold_state::renewed : spi::hold_state::held;
  answer.grant = granted_to(step, at, row);
  // The push may have been lost; the lock stays protected until the hold ends.
  if (row.revoked) tell_gone(step, row, revoked_text, row.ends - step.now);
  note(step, at, spi::event_kind::renewed, row, true);
  return answer;
}

entry book::prolong(const moment& step, resource& at, const entry& held) {
  if (mutated(mutant::fence_in_second_call)) write_fence(at, held.fence, held.fence_block);
  entry now = held;
  now.process = step.self;
  if (!held.revoked && (held.offer || held.renewed)) {
    now.offer = false;
    set_end(now, step.now);
  }
  const bool changed =
      now.process != held.process || now.offer != held.offer || now.ends != held.ends;
  if (changed) change_holder(at, held, now);
  return now;
}

spi::blocked book::blocked_at(const moment& step, resource& at, const entry& row, bool queued) {
  spi::blocked answer;
  answer.queued = queued;
  answer.at = step.now;
  answer.recheck_after = recheck_after(step, at, row, queued);
  if (at.is_blocked(step.now)) {
    answer.blocker = "the lock delay of a holder that ended abnormally";
  } else if (const auto held = holders(at, 1); !held.empty()) {
    answer.blocker = held.front().payload;
  } else if (const entry* head = next_waiter(at, 0); head != nullptr && head->id != row.id) {
    answer.blocker = head->payload;
  }
  return answer;
}

void book::tell(const moment& step, push::kind what, const entry& row) const {
  if (row.process == nobody && !rules_.holds_are_leases) return;
  step.out.pushes.push_back({{what, row.id}, row.process});
}

void book::tell_gone(const moment& step, const entry& row, const char* why, duration kept) const {
  if (row.process == nobody && !rules_.holds_are_leases) return;
  step.out.pushes.push_back(
      {{push::kind::gone, row.id, std::nullopt, {errc::lost, why}}, row.process, kept});
}

void book::note(const moment& step, const resource& at, spi::event_kind what, const entry& row,
                bool fenced) {
  if (!at.observed && !step.out.observed) return;
  spi::resource_id id = id_of(at);
  spi::store_event event;
  event.kind = what;
  event.name = id.name;
  event.claim = spi::public_id(row.id);
  event.mode = row.mode;
  if (fenced) event.fence = fence_token(row.fence);
  event.payload = row.payload;
  step.out.events.push_back({std::move(id), std::move(event)});
}

// Reserves `block` numbers and answers the first.
std::uint64_t book::next_fence(resource& at, std::uint32_t block) const {
  const std::uint64_t fence = std::max(at.last + 1, fence_floor());
  if (!mutated(mutant::fence_in_second_call)) write_fence(at, fence, block);
  return fence;
}

// No later fence is below fence + block.
void book::write_fence(resource& at, std::uint64_t fence, std::uint32_t block) noexcept {
  at.last = std::max(at.last, fence + std::max(block, 1U) - 1);
  at.dirty = true;
}

// A vote is near this clock on both sides: not far above it, or one client's proposal
// would push everybody's fences ahead; not far below it, or a member that forgot its
// last fence could repeat it.
std::uint64_t book::fence_for(const moment& step, resource& at, const entry& row) const {
  if (!row.proposed_fence) return next_fence(at, row.fence_block);
  const duration now = step.now.time_since_epoch();
  const std::uint64_t own = std::max(at.last + 1, microseconds(now));
  const std::uint64_t proposed = *row.proposed_fence;
  const bool fits = proposed > at.last && proposed >= microseconds(now - rules_.fence_slack) &&
                    proposed <= microseconds(now + rules_.fence_slack);
  const std::uint64_t fence = fits ? proposed : own;
  write_fence(at, fence, row.fence_block);
  return fence;
}

duration book::counts_after(spi::server_time now, const entry& row) const noexcept {
  if (!row.proposed_fence || !born_ || rules_.longest_ttl == duration{0}) return duration{0};
  const spi::server_time counts = after(*born_, rules_.longest_ttl);
  return counts <= now ? duration{0} : counts - now;
}

}  // namespace holdfast::ledgers
