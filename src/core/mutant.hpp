// Deliberate defects, one at a time, that the simulator must catch: a checker that cannot fail
// proves nothing. In the shipped objects mutated() is the constant false; the mutants' build of the
// same sources (HOLDFAST_MUTANTS) asks a switch that lab/sim sets before it starts a world.
#pragma once

#include <cstdint>

namespace holdfast::core {

enum class mutant : std::uint8_t {
  none,
  margin_ignored,
  proof_dated_at_answer,
  push_dated_at_arrival,
  renewal_after_release,
  renewal_creates,
  not_yours_taken_as_ok,
  local_deadline_unchecked,
  check_then_arm,
  no_recheck_bound,
  new_id_on_retry,
  release_given_up_at_answered,
  late_duplicate_revives,
  fence_in_second_call,
  fence_changes_on_reentry,
  release_without_owner_check,
  fair_served_last_first,
  dead_waiter_kept,
  live_waiter_removed,
  offer_never_ends,
  cleanup_under_callers_token,
  watchdog_stops_after_error,
  writer_let_in_on_downgrade,
  permit_returned_twice,
  latch_counts_repeats,
  unknown_taken_as_loss,
  unknown_taken_as_success,
  early_grant_dropped,
  offer_never_completed,
  silent_waiter_offered,
  adopted_twice,
  adopted_after_its_end,
  renewed_by_both_sides,
  turn_never_ends,
  // Of the quorum, caught in worlds of their own.
  quorum_fence_not_written_back,
  quorum_fence_written_back_anywhere,
  quorum_young_member_counted,
  quorum_majority_of_the_reachable,
  quorum_earlier_round_counted,
  quorum_push_believed,
};

extern mutant active_mutant;  // of lab/sim

#ifdef HOLDFAST_MUTANTS
inline bool mutated(mutant which) noexcept { return active_mutant == which; }
#else
constexpr bool mutated(mutant) noexcept { return false; }
#endif

}  // namespace holdfast::core
