#include "sim/mutants.hpp"

#include "sim/campaign.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace holdfast::core {

#ifdef HOLDFAST_MUTANTS
mutant active_mutant = mutant::none;
#endif

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
          "an attempt that comes late places the claim anew"},
    named{mutant::fence_in_second_call, "fence-in-second-call",
          "the fence is read at the grant and written later"},
    named{mutant::fence_changes_on_reentry, "fence-changes-on-reentry",
          "entering again takes a new fence"},
    named{mutant::release_without_owner_check, "release-without-owner-check",
          "a release frees whoever holds"},
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
};
static_assert(table.size() == static_cast<std::size_t>(mutant::offer_never_completed));

const named& entry_of(mutant which) noexcept { return table[static_cast<std::size_t>(which) - 1]; }

// So many failing seeds tell which checkers see a mutant, and which do not; at most so many more
// seeds are run to find them.
constexpr std::uint64_t enough_failures = 20;
constexpr std::uint64_t fewest_seeds = 2'000;
constexpr std::uint64_t more_seeds = 8;

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

std::optional<core::mutant> mutant_named(std::string_view name) noexcept {
  for (const named& each : table) {
    if (each.name == name) return each.which;
  }
  return std::nullopt;
}

void activate([[maybe_unused]] core::mutant mutant) noexcept {
#ifdef HOLDFAST_MUTANTS
  core::active_mutant = mutant;
#endif
}

mutant_verdict judge(core::mutant mutant, std::uint32_t threads) {
  activate(mutant);
  mutant_verdict verdict;
  verdict.mutant = mutant;
  campaign_settings settings;
  settings.threads = threads;
  settings.seeds = mutant_seeds;
  settings.failures = 1;
  const campaign_result first = run_campaign(settings);
  verdict.tried = first.seeds;
  if (!first.failed.empty()) {
    verdict.seeds = first.failed.front().seed - settings.first + 1;
    settings.seeds = std::min(mutant_seeds, std::max(fewest_seeds, *verdict.seeds * more_seeds));
    settings.failures = enough_failures;
    for (const failed_seed& failed : run_campaign(settings).failed) {
      for (const violation& each : failed.violations) ++verdict.checkers[each.checker];
    }
  }
  activate(core::mutant::none);
  return verdict;
}

std::string to_markdown(const std::vector<mutant_verdict>& verdicts) {
  std::string text = "| mutant | what is wrong | seeds needed | caught by |\n|---|---|---|---|\n";
  for (const mutant_verdict& each : verdicts) {
    const named& known = entry_of(each.mutant);
    text.append("| ").append(known.name).append(" | ").append(known.defect).append(" | ");
    text +=
        each.seeds ? std::to_string(*each.seeds) : "not caught in " + std::to_string(each.tried);
    text += " | ";
    std::vector<std::pair<std::string_view, std::uint64_t>> seen(each.checkers.begin(),
                                                                 each.checkers.end());
    std::stable_sort(seen.begin(), seen.end(), [](const auto& left, const auto& right) {
      return left.second > right.second;
    });
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (i > 0) text += ", ";
      const bool only = seen.size() == 1;
      text.append(only ? "**" : "").append(seen[i].first).append(only ? "**" : "");
    }
    text += " |\n";
  }
  return text;
}

std::vector<std::string_view> sole_catchers(const std::vector<mutant_verdict>& verdicts) {
  std::set<std::string_view> found;
  for (const mutant_verdict& each : verdicts) {
    if (each.checkers.size() == 1) found.insert(each.checkers.begin()->first);
  }
  return {found.begin(), found.end()};
}

}  // namespace holdfast::sim
