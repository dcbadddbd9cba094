// The program `sim_quorum`: worlds of a quorum by the thousand, or one with its timeline. Compiled with
// HOLDFAST_MUTANTS it is `sim_quorum_mutants`, which breaks the quorum on purpose, one way at a time,
// and ends with 1 unless each is seen.
#include "sim/campaign.hpp"
#include "sim/mutants.hpp"
#include "sim/quorum/quorum_world.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::sim {

namespace {

constexpr int clean = 0;
constexpr int broken = 1;
constexpr int misused = 2;

struct variant {
  core::mutant which;
  std::string_view name;
  std::string_view defect;
  std::uint64_t known_seed;  // the first that showed it in the last search
};

constexpr std::array variants{
    variant{core::mutant::quorum_fence_not_written_back, "fence-not-written-back",
            "the greatest fence is reported, wherever it is written", 207},
    variant{core::mutant::quorum_fence_written_back_anywhere, "fence-written-back-anywhere",
            "a write-back counts where the claim is no holder", 2215},
    variant{core::mutant::quorum_young_member_counted, "young-member-counted",
            "a member that lost its state counts at once", 543},
    variant{core::mutant::quorum_majority_of_the_reachable, "majority-of-the-reachable",
            "a majority of those that answered is enough", 4},
    variant{core::mutant::quorum_earlier_round_counted, "earlier-round-counted",
            "a late grant of an earlier round counts", 3},
    variant{core::mutant::quorum_push_believed, "push-believed",
            "one member's word that it took the claim away ends the hold", 32},
    variant{core::mutant::proof_dated_at_answer, "proof-dated-at-answer",
            "validity counted from the answer", 531},
};

// Within how many seeds every variant must be seen.
constexpr std::uint64_t variant_seeds = 20'000;

struct command {
  campaign_settings campaign;
  std::optional<std::uint64_t> seed;
  bool trace = false;
  bool all = false;
  bool known = false;  // of each variant: the search begins at its known seed
  core::mutant mutant = core::mutant::none;
};

std::optional<core::mutant> variant_named(std::string_view name) {
  for (const variant& each : variants) {
    if (each.name == name) return each.which;
  }
  return std::nullopt;
}

bool take(std::string_view option, std::string_view word, command& made) {
  if (option == "--mutant") {
    const auto found = variant_named(word);
    made.mutant = found.value_or(core::mutant::none);
    return found.has_value();
  }
  std::uint64_t value = 0;
  const auto end = word.data() + word.size();
  if (word.empty() || std::from_chars(word.data(), end, value).ptr != end) return false;
  if (option == "--seeds")
    made.campaign.seeds = value;
  else if (option == "--first")
    made.campaign.first = value;
  else if (option == "--jobs")
    made.campaign.threads = static_cast<std::uint32_t>(value);
  else if (option == "--failures")
    made.campaign.failures = value;
  else if (option == "--seed")
    made.seed = value;
  else
    return false;
  return true;
}

std::optional<command> parse(int count, char** words) {
  command made;
  made.campaign.threads = std::max(1U, std::thread::hardware_concurrency());
  made.campaign.run = [](std::uint64_t seed) { return run_quorum_seed(seed); };
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--trace") {
      made.trace = true;
    } else if (word == "--all") {
      made.all = true;
    } else if (word == "--known") {
      made.all = made.known = true;
    } else if (i + 1 >= count || !take(word, words[++i], made)) {
      return std::nullopt;
    }
  }
  return made;
}

void show(const violation& each) {
  std::printf("  broken: %s, at %.6f s: %s\n", std::string(each.checker).c_str(),
              static_cast<double>(each.at.count()) / 1e9, each.message.c_str());
}

int show_seed(const command& asked) {
  const auto print = [](const std::string& line) { std::puts(line.c_str()); };
  const world_outcome outcome =
      run_quorum_seed(*asked.seed, asked.trace ? history::sink(print) : nullptr);
  for (const violation& each : outcome.violations) show(each);
  std::printf("seed %llu: %llu events, %u grants, %.3f s of virtual time, trace %016llx\n",
              static_cast<unsigned long long>(*asked.seed),
              static_cast<unsigned long long>(outcome.steps), outcome.grants,
              static_cast<double>(outcome.length.count()) / 1e9,
              static_cast<unsigned long long>(outcome.hash));
  return outcome.violations.empty() ? clean : broken;
}

int show_campaign(const command& asked) {
  const campaign_result result = run_campaign(asked.campaign);
  for (const failed_seed& each : result.failed) {
    std::printf("seed %llu breaks a guarantee\n", static_cast<unsigned long long>(each.seed));
    for (const violation& seen : each.violations) show(seen);
  }
  std::puts(result.summary().c_str());
  return result.failed.empty() ? clean : broken;
}

int show_variants(const command& asked) {
  bool all_seen = true;
  std::puts("| variant | what is wrong | seeds needed | seen by |\n|---|---|---|---|");
  for (const variant& each : variants) {
    activate(each.which);
    campaign_settings settings = asked.campaign;
    settings.seeds = variant_seeds;
    settings.failures = 1;
    if (asked.known) settings.first = each.known_seed;
    const campaign_result result = run_campaign(settings);
    activate(core::mutant::none);
    const bool seen = !result.failed.empty();
    all_seen = all_seen && seen;
    const std::string needed = seen ? std::to_string(result.failed.front().seed) : "NOT SEEN";
    const std::string by =
        seen ? std::string(result.failed.front().violations.front().checker) : "";
    std::printf("| %s | %s | %s | %s |\n", each.name.data(), each.defect.data(), needed.c_str(),
                by.c_str());
    std::fflush(stdout);
  }
  return all_seen ? clean : broken;
}

}  // namespace

int run_quorum(int count, char** words) {
  const auto asked = parse(count, words);
  if (!asked) {
    std::fputs(
        "usage: sim_quorum [--seeds N] [--first S] [--jobs T] [--failures N]\n"
        "       sim_quorum --seed S [--trace]\n"
        "       sim_quorum_mutants --all | --known | --mutant NAME [as sim_quorum]\n",
        stderr);
    return misused;
  }
#ifndef HOLDFAST_MUTANTS
  if (asked->all || asked->mutant != core::mutant::none) {
    std::fputs("this program has no mutants: build/sim_quorum_mutants has\n", stderr);
    return misused;
  }
#endif
  if (asked->all) return show_variants(*asked);
  activate(asked->mutant);
  return asked->seed ? show_seed(*asked) : show_campaign(*asked);
}

}  // namespace holdfast::sim

int main(int count, char** words) { return holdfast::sim::run_quorum(count, words); }
