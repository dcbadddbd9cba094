#include "sim/mutants.hpp"

#include "sim/campaign.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace holdfast::core {

mutant active_mutant = mutant::none;

}  // namespace holdfast::core

namespace holdfast::sim {

namespace {

using core::mutant;

struct named {
  mutant which;
  std::string_view name;
  std::string_view defect;
};

constexpr std::array table{
    named{mutant::margin_ignored, "margin-ignored", "validity without the drift margin"},
    named{mutant::proof_dated_at_answer, "proof-dated-at-answer",
          "a grant dated when its answer came"},
    named{mutant::push_dated_at_arrival, "push-dated-at-arrival",
          "a pushed grant dated when it was read"},
    named{mutant::renewal_after_release, "renewal-after-release",
          "the watchdog goes on after the release"},
    named{mutant::renewal_creates, "renewal-creates", "a renewal takes what is free"},
    named{mutant::not_yours_taken_as_ok, "not-yours-taken-as-ok",
          "a renewal's \"not yours\" counts as renewed"},
    named{mutant::local_deadline_unchecked, "local-deadline-unchecked",
          "a hold does not end by its own clock"},
    named{mutant::check_then_arm, "check-then-arm",
          "a wake-up between the attempt and its answer is dropped"},
    named{mutant::no_recheck_bound, "no-recheck-bound", "a waiter never asks again by itself"},
    named{mutant::new_id_on_retry, "new-id-on-retry", "every attempt is a new claim"},
    named{mutant::release_given_up_at_answered, "release-given-up-at-answered",
          "a release is given up when the last answered renewal has run out"},
    named{mutant::late_duplicate_revives, "late-duplicate-revives",
          "an attempt that comes late places the claim again"},
    named{mutant::fence_in_second_call, "fence-in-second-call",
          "the fence is read at the grant and written later"},
    named{mutant::fence_changes_on_reentry, "fence-changes-on-reentry",
          "entering again takes a new fence"},
    named{mutant::release_without_owner_check, "release-without-owner-check",
          "a release frees any holder"},
    named{mutant::fair_served_last_first, "fair-served-last-first",
          "the last in line is served first"},
    named{mutant::dead_waiter_kept, "dead-waiter-kept", "a waiter's lease never ends"},
    named{mutant::live_waiter_removed, "live-waiter-removed",
          "a waiter's sign of life is not counted"},
    named{mutant::offer_never_ends, "offer-never-ends", "an offer that nobody takes up stays"},
    named{mutant::cleanup_under_callers_token, "cleanup-under-callers-token",
          "a cancelled claim is not withdrawn"},
    named{mutant::watchdog_stops_after_error, "watchdog-stops-after-error",
          "one failed renewal is the last"},
    named{mutant::writer_let_in_on_downgrade, "writer-let-in-on-downgrade",
          "a downgrade frees for a moment"},
    named{mutant::permit_returned_twice, "permit-returned-twice", "a release gives back double"},
    named{mutant::latch_counts_repeats, "latch-counts-repeats", "a repeated down counts once more"},
    named{mutant::unknown_taken_as_loss, "unknown-taken-as-loss", "no answer to a renewal is loss"},
    named{mutant::unknown_taken_as_success, "unknown-taken-as-success",
          "no answer to an attempt is a grant"},
    named{mutant::early_grant_dropped, "early-grant-dropped",
          "a push before the attempt's answer is dropped"},
    named{mutant::offer_never_completed, "offer-never-completed",
          "a pushed grant is never made a full lease"},
    named{mutant::silent_waiter_offered, "silent-waiter-offered",
          "each dead or paused waiter in line costs an offer of its own"},
    named{mutant::adopted_twice, "adopted-twice",
          "a token adopts whatever its name's holder is by then"},
    named{mutant::adopted_after_its_end, "adopted-after-its-end",
          "a token makes the hold that it does not find"},
    named{mutant::renewed_by_both_sides, "renewed-by-both-sides",
          "the process that detached a lease goes on renewing it"},
    named{mutant::turn_never_ends, "turn-never-ends",
          "a claim that is kept for a thread that comes back is never released"},
};
static_assert(table.size() == static_cast<std::size_t>(mutant::turn_never_ends));

const named& entry_of(mutant which) noexcept { return table[static_cast<std::size_t>(which) - 1]; }

// This many failing seeds show which checkers see a mutant and which do not; at most this many more
// seeds are run to find them.
constexpr std::uint64_t enough_failures = 20;
constexpr std::uint64_t fewest_seeds = 2'000;
constexpr std::uint64_t more_seeds = 8;
// The short search around a seed that is known to show it.
constexpr std::uint64_t seeds_near = 256;

// The seeds in which the mutant was caught: a seed that fails without it too says nothing about it.
std::vector<failed_seed> run_mutated(core::mutant mutant, const campaign_settings& settings,
                                     std::uint64_t& tried) {
  activate(mutant);
  campaign_result result = run_campaign(settings);
  activate(core::mutant::none);
  tried += result.seeds;
  std::erase_if(result.failed,
                [](const failed_seed& each) { return !run_seed(each.seed).violations.empty(); });
  return std::move(result.failed);
}

void count(const std::vector<failed_seed>& caught, mutant_verdict& verdict) {
  for (const failed_seed& seed : caught) {
    for (const violation& each : seed.violations) ++verdict.checkers[each.checker];
  }
}

}  // namespace

const std::vector<core::mutant>& all_mutants() {
  static const std::vector<core::mutant> all = [] {
    std::vector<core::mutant> made;
    for (const named& each : table) made.push_back(each.which);
    return made;
  }();
  return all;
}

std::string_view name_of(core::mutant mutant) noexcept {
  return mutant == core::mutant::none ? "none" : entry_of(mutant).name;
}

std::string_view defect_of(core::mutant mutant) noexcept { return entry_of(mutant).defect; }

std::optional<core::mutant> mutant_named(std::string_view name) noexcept {
  for (const named& each : table) {
    if (each.name == name) return each.which;
  }
  return std::nullopt;
}

void activate(core::mutant mutant) noexcept { core::active_mutant = mutant; }

mutant_verdict judge(core::mutant mutant, std::uint32_t threads) {
  mutant_verdict verdict;
  verdict.mutant = mutant;
  campaign_settings settings;
  settings.threads = threads;
  settings.failures = 1;
  while (verdict.tried < mutant_seeds && !verdict.seeds) {
    settings.first = 1 + verdict.tried;
    settings.seeds = mutant_seeds - verdict.tried;
    const auto caught = run_mutated(mutant, settings, verdict.tried);
    if (!caught.empty()) verdict.seeds = caught.front().seed;
  }
  if (!verdict.seeds) return verdict;
  settings.first = 1;
  settings.seeds = std::min(mutant_seeds, std::max(fewest_seeds, *verdict.seeds * more_seeds));
  settings.failures = enough_failures;
  count(run_mutated(mutant, settings, verdict.tried), verdict);
  // Where the page's check looks: the page names the checkers that see it there.
  for (const auto& [name, times] : judge_near(mutant, *verdict.seeds, threads).checkers) {
    verdict.checkers[name] += times;
  }
  return verdict;
}

mutant_verdict judge_near(core::mutant mutant, std::uint64_t seed, std::uint32_t threads) {
  mutant_verdict verdict;
  verdict.mutant = mutant;
  campaign_settings settings;
  settings.threads = threads;
  settings.first = seed;
  settings.seeds = seeds_near;
  settings.failures = enough_failures;
  const auto caught = run_mutated(mutant, settings, verdict.tried);
  if (!caught.empty()) verdict.seeds = caught.front().seed;
  count(caught, verdict);
  return verdict;
}

std::vector<std::string_view> sole_catchers(const std::vector<mutant_verdict>& verdicts) {
  std::set<std::string_view> found;
  for (const mutant_verdict& each : verdicts) {
    if (each.checkers.size() == 1) found.insert(each.checkers.begin()->first);
  }
  return {found.begin(), found.end()};
}

}  // namespace holdfast::sim
