// Count-down latches: set, down, read. A latch lives a while after its last change, also at zero; then it
// is unset.
#include "core/mutant.hpp"
#include "stores/ledger/book.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::ledgers {

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
  const bool counts_repeats = !sets && core::mutated(core::mutant::latch_counts_repeats);
  if (!unset && latch_counted(at, change.id, step.now) && !counts_repeats) {
    return spi::latch_state{count};
  }
  if (sets && count > 0) {
    return failure(errc::conflict, "the latch is set, its count is " + std::to_string(count));
  }
  // Ids of an earlier count are known for a while: a late repetition must not count on the next.
  const spi::server_time remembered = after(step.now, rules_.tombstone_extra);
  if (!sets && count == 0) {  // counts nowhere, and not on the next count either
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
