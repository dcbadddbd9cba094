// How a resource passes from one claim to the next: ended claims are removed,
// the next ones are granted.
#include "core/mutant.hpp"
#include "stores/ledger/book.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace holdfast::ledgers {

using core::mutant;
using core::mutated;

namespace {

bool speaks(const moment& step, const entry& row) {
  return step.claim != nullptr && *step.claim == row.id;
}

// The decision: exclusive requires no other holder, shared no exclusive one, and the
// permits must suffice; after an abnormal end the resource may be blocked for a while.
// Waiters are not considered.
bool fits_beside_holders(const resource& at, const entry& row, spi::server_time now) {
  if (at.is_blocked(now)) return false;
  switch (row.mode) {
    case spi::mode::exclusive:
      return at.holders == 0;
    case spi::mode::shared:
      return at.exclusive == 0;
    case spi::mode::permit:
      return at.permits + row.permits <= at.max;
  }
  return false;
}

void count(resource& at, const entry& row) {
  ++at.holders;
  if (row.mode == spi::mode::exclusive) ++at.exclusive;
  if (row.mode == spi::mode::permit) at.permits += row.permits;
  at.next_end = std::min(at.next_end, row.ends);
  at.dirty = true;
}

void discount(resource& at, const entry& row) {
  --at.holders;
  if (row.mode == spi::mode::exclusive) --at.exclusive;
  if (row.mode == spi::mode::permit) {
    const std::uint64_t returned =
        mutated(mutant::permit_returned_twice) ? 2 * std::uint64_t{row.permits} : row.permits;
    at.permits -= std::min(at.permits, returned);
  }
  if (at.holders == 0) at.next_end = never;
  at.dirty = true;
}

}  // namespace

void book::add_holder(resource& at, const entry& row) {
  count(at, row);
  put_holder(at, row);
}

void book::remove_holder(resource& at, const entry& row) {
  discount(at, row);
  erase_holder(at, row);
}

void book::change_holder(resource& at, const entry& before, const entry& now) {
  discount(at, before);
  count(at, now);
  replace_holder(at, before, now);
}

void book::add_waiter(resource& at, const entry& row) {
  put_waiter(at, row);
  ++at.waiting;
  if (row.fair) ++at.waiting_fair;
  if (row.mode == spi::mode::exclusive) ++at.waiting_exclusive;
  at.dirty = true;
}

void book::remove_waiter(resource& at, const entry& row) {
  if (--at.waiting == 0) at.silent_since = long_ago;
  if (row.fair) --at.waiting_fair;
  if (row.mode == spi::mode::exclusive) --at.waiting_exclusive;
  at.dirty = true;
  erase_waiter(at, row);
}

void book::promote(const moment& step, resource& at) {
  drop_ended(step, at);
  std::vector<entry> granted;
  bool handing_over = false;
  std::size_t count = 0;
  for (; at.waiting > 0 && count < rules_.promote_limit && !closed(step, at); ++count) {
    const entry* found = next_in_line(step, at);
    if (found == nullptr) break;
    const entry next = *found;
    if (dead(step, next)) {
      withdraw(step, at, next);
      continue;
    }
    if (!free_for(step, at, next)) break;
    // Asked once: a release that lets in one reader lets in all up to the next writer.
    handing_over = handing_over || hands_over(step, at, next);
    if (!handing_over) {
      if (tell_free(at, next)) tell(step, push::kind::freed, next);
      break;
    }
    remove_waiter(at, next);
    granted.push_back(grant(step, at, next));
  }
  // After the last grant, so that `wanted` does not count claims that were granted together.
  for (const entry& row : granted) {
    if (speaks(step, row)) continue;
    if (at.waiting > 0) mark_told(at, row);
    step.out.pushes.push_back(
        {{push::kind::granted, row.id, granted_to(step, at, row)}, row.process});
  }
  // The new head was watching only the last of the granted claims. And where the limit ended this
  // step, the head's own attempt continues it.
  if (rules_.head_watches && (granted.size() > 1 || count == rules_.promote_limit)) {
    wake_head(step, at);
  }
}

void book::drop_ended(const moment& step, resource& at) {
  if (at.kind == kind::latch) return;
  if (at.next_end <= step.now) {
    for (const entry& row : ended_holders(at, step.now)) {
      if (row.offer && !row.revoked && at.waiting > 0) {
        at.silent_since = std::max(at.silent_since, row.since);
      }
      step.out.ended.emplace_back(row.process, row.id);
      end_abnormally(step, at, row, row.ends);
    }
  }
  if (mutated(mutant::dead_waiter_kept)) return;
  for (const entry& row : ended_waiters(at, step.now)) {
    step.out.ended.emplace_back(row.process, row.id);
    withdraw(step, at, row);
  }
}

bool book::drop_dead_holders(const moment& step, resource& at) {
  if (step.dead == nullptr || step.dead->empty() || at.holders == 0) return false;
  bool dropped = false;
  for (const entry& row : holders(at, rules_.claim_limit)) {
    if (!dead(step, row)) continue;
    end_abnormally(step, at, row, step.now);
    dropped = true;
  }
  return dropped;
}

// It did not release: it may still be at work, and where no fence is checked only time helps.
void book::end_abnormally(const moment& step, resource& at, const entry& row,
                          spi::server_time since) {
  remove_holder(at, row);
  at.block(row.lock_delay, since);
  note(step, at, spi::event_kind::expired, row, true);
}

void book::withdraw(const moment& step, resource& at, const entry& row) {
  remove_waiter(at, row);
  note(step, at, spi::event_kind::withdrawn, row, false);
}

bool book::dead(const moment& step, const entry& row) {
  return step.dead != nullptr && step.dead->contains(row.process);
}

// Without looking at the queue: a live exclusive holder keeps everybody out.
bool book::closed(const moment& step, resource& at) {
  if (at.exclusive == 0) return false;
  if (step.dead == nullptr || step.dead->empty()) return true;
  const auto held = holders(at, 1);
  return !held.empty() && !dead(step, held.front());
}

// Whether a claim can be granted beside the holders, once the dead among them are removed.
bool book::free_for(const moment& step, resource& at, const entry& row) {
  if (fits_beside_holders(at, row, step.now)) return true;
  return drop_dead_holders(step, at) && fits_beside_holders(at, row, step.now);
}

// Dead waiters are not skipped: the call that meets them removes them.
const entry* book::next_in_line(const moment& step, resource& at) {
  const bool last_first = mutated(mutant::fair_served_last_first);
  const entry* each = last_first ? previous_waiter(at, std::numeric_limits<std::int64_t>::max())
                                 : next_waiter(at, 0);
  while (each != nullptr && !dead(step, *each) && !eligible(step, at, *each)) {
    each = last_first ? previous_waiter(at, each->place) : next_waiter(at, each->place);
  }
  return each;
}

// The calling claim can be granted by the answer, with or without a subscription; other waiters
// must be reachable, or they would keep reachable ones waiting.
bool book::eligible(const moment& step, const resource& at, const entry& waiting) {
  if (speaks(step, waiting)) {
    if (fits_beside_holders(at, waiting, step.now)) return true;
  } else if (at.silent_since != long_ago && !mutated(mutant::silent_waiter_offered)) {
    if (last_word(step, waiting) <= at.silent_since) return false;
  }
  return !reachable_ || reachable_(waiting.process);
}

// Strict hand-over between two processes that take turns halves their throughput: the
// one that releases may not take the lock again, although it is running and the other
// must be woken first. So a lone unfair waiter is only notified, and is sure to get the
// lock once it has waited a little.
bool book::hands_over(const moment& step, const resource& at, const entry& next) const {
  if (speaks(step, next) || next.fair || at.waiting >= 2) return true;
  return step.now - next.since > rules_.hand_over_after;
}

// The waiters decide whether a newcomer may take what is free.
bool book::may_pass(const moment& step, resource& at, const entry& newcomer) {
  if (at.waiting == 0) return true;
  const bool reads = newcomer.mode == spi::mode::shared;
  // A stream of readers would keep a writer out forever.
  if (!newcomer.fair && at.waiting_fair == 0 && (!reads || at.waiting_exclusive == 0)) return true;
  if (at.silent_since == long_ago && !reachable_) return false;
  for (const entry* each = next_waiter(at, 0); each != nullptr;
       each = next_waiter(at, each->place)) {
    if (dead(step, *each) || !eligible(step, at, *each)) continue;
    if (newcomer.fair || each->fair) return false;
    if (reads && each->mode == spi::mode::exclusive) return false;
  }
  return true;
}

entry book::grant(const moment& step, resource& at, entry row) {
  const bool answered = speaks(step, row);
  row.fence = fence_for(step, at, row);
  row.since = step.now;
  row.offer = !answered && !(rules_.own_pushes_arrive && row.process == step.self);
  row.told = answered && at.waiting > 0;
  set_end(row, step.now);
  taken(at);
  if (!at.is_blocked(step.now)) {  // it is over, and a restart need not find it
    at.blocked_until = long_ago;
    at.blocked_for = duration{0};
  }
  add_holder(at, row);
  note(step, at, spi::event_kind::granted, row, true);
  return row;
}

void book::set_end(entry& row, spi::server_time now) const {
  if (row.offer) {
    row.ends =
        mutated(mutant::offer_never_ends) ? never : after(now, std::min(row.ttl, rules_.offer));
  } else {
    row.ends = row.renewed && !rules_.holds_are_leases ? never : after(now, row.ttl);
  }
}

void book::wake_head(const moment& step, resource& at) {
  if (const entry* head = next_in_line(step, at)) tell(step, push::kind::freed, *head);
}

duration book::waiter_lease() const noexcept {
  return mutated(mutant::live_waiter_removed) ? rules_.waiter_lease / 10 : rules_.waiter_lease;
}

}  // namespace holdfast::ledgers
