// The program `sim`: runs worlds by the thousand, or one of them with its timeline. Compiled with
// HOLDFAST_MUTANTS it is `sim_mutants`, which shows that the checkers see the defects that they
// exist for.
#include "sim/campaign.hpp"
#include "sim/mutant_page.hpp"

#include <charconv>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::sim {

namespace {

constexpr int clean = 0;
constexpr int broken = 1;
constexpr int misused = 2;

constexpr std::string_view usage =
    "usage: sim [--seeds N] [--first S] [--jobs T] [--time SECONDS] [--failures N]\n"
    "       sim --seed S [--trace]\n"
    "       sim_mutants [--write PAGE | --page PAGE]   all mutants: search, or check "
    "docs/mutants.md\n"
    "       sim_mutants --mutant NAME [as sim]\n"
    "Parts of a world can be left out: --clients, --actors, --rounds, --resources,\n"
    "--disturbances N (at most), --only TROUBLE,TROUBLE,...\n";

struct command {
  campaign_settings campaign;
  std::optional<std::uint64_t> seed;
  bool trace = false;
  std::string page;  // docs/mutants.md
  bool write_page = false;
  core::mutant mutant = core::mutant::none;
};

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ptr == end && !text.empty();
}

// An option with a number; false if there is no such option.
bool take_number(std::string_view option, std::uint64_t value, command& made) {
  restrictions& most = made.campaign.at_most;
  const auto small = static_cast<std::uint32_t>(value);
  const std::map<std::string_view, std::function<void()>> options{
      {"--seeds", [&] { made.campaign.seeds = value; }},
      {"--first", [&] { made.campaign.first = value; }},
      {"--jobs", [&] { made.campaign.threads = small; }},
      {"--threads", [&] { made.campaign.threads = small; }},
      {"--failures", [&] { made.campaign.failures = value; }},
      {"--time", [&] { made.campaign.limit = std::chrono::seconds(value); }},
      {"--seed", [&] { made.seed = value; }},
      {"--clients", [&] { most.clients = small; }},
      {"--actors", [&] { most.actors = small; }},
      {"--rounds", [&] { most.rounds = small; }},
      {"--resources", [&] { most.resources = small; }},
      {"--disturbances", [&] { most.disturbances = small; }},
  };
  const auto found = options.find(option);
  if (found == options.end()) return false;
  found->second();
  return true;
}

// An option with a text.
bool take_word(std::string_view option, std::string_view word, command& made) {
  if (option == "--only") {
    made.campaign.at_most.troubles = {};
    while (!word.empty() && word != "nothing") {
      const std::string_view name = word.substr(0, word.find(','));
      const auto kind = trouble_named(name);
      if (!kind) return false;
      made.campaign.at_most.troubles.add(*kind);
      word.remove_prefix(std::min(word.size(), name.size() + 1));
    }
    return true;
  }
  if (option == "--mutant") {
    const auto mutant = mutant_named(word);
    made.mutant = mutant.value_or(core::mutant::none);
    return mutant.has_value();
  }
  if (option == "--page" || option == "--write") {
    made.page = word;
    made.write_page = option == "--write";
    return true;
  }
  return false;
}

std::optional<command> parse(int count, char** words) {
  command made;
  made.campaign.threads = std::max(1U, std::thread::hardware_concurrency());
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--trace") {
      made.trace = true;
    } else if (i + 1 < count) {
      const std::string_view next = words[++i];
      std::uint64_t value = 0;
      const bool known =
          parse_number(next, value) ? take_number(word, value, made) : take_word(word, next, made);
      if (!known) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return made;
}

int show_seed(const command& asked) {
  const auto print = [](const std::string& line) { std::puts(line.c_str()); };
  const world_outcome outcome =
      run_seed(*asked.seed, asked.campaign.at_most, asked.trace ? history::sink(print) : nullptr);
  for (const violation& each : outcome.violations) {
    std::printf("broken: %s, at %.6f s: %s\n", std::string(each.checker).c_str(),
                static_cast<double>(each.at.count()) / 1e9, each.message.c_str());
  }
  std::printf("seed %llu: %llu events, %u grants, %.3f s of virtual time, trace %016llx\n",
              static_cast<unsigned long long>(*asked.seed),
              static_cast<unsigned long long>(outcome.steps), outcome.grants,
              static_cast<double>(outcome.length.count()) / 1e9,
              static_cast<unsigned long long>(outcome.hash));
  return outcome.violations.empty() ? clean : broken;
}

int show_campaign(const command& asked, const std::string& program) {
  const campaign_result result = run_campaign(asked.campaign);
  for (const failed_seed& each : result.failed) {
    std::fputs(report(each, asked.campaign.at_most, program).c_str(), stdout);
  }
  std::puts(result.summary().c_str());
  return result.failed.empty() ? clean : broken;
}

#ifdef HOLDFAST_MUTANTS
std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int search_mutants(const command& asked) {
  std::vector<mutant_verdict> verdicts;
  bool all_caught = true;
  for (const core::mutant each : all_mutants()) {
    verdicts.push_back(judge(each, asked.campaign.threads));
    const mutant_verdict& verdict = verdicts.back();
    all_caught = all_caught && verdict.seeds.has_value();
    std::fprintf(stderr, "%-30s %s\n", std::string(name_of(each)).c_str(),
                 verdict.seeds ? std::to_string(*verdict.seeds).c_str() : "NOT CAUGHT");
  }
  const std::string table = to_table(verdicts);
  std::fputs(table.c_str(), stdout);
  if (asked.write_page) {
    const auto before = text_of(asked.page);
    std::ofstream page(asked.page, std::ios::trunc);
    page << with_table(before.value_or(""), table) << std::flush;
    if (!page) return misused;
  }
  return all_caught && sole_catchers(verdicts).size() >= fewest_sole_catchers ? clean : broken;
}

int check_mutants(const command& asked) {
  const auto page = text_of(asked.page);
  if (!page) {
    std::fprintf(stderr, "cannot read %s\n", asked.page.c_str());
    return misused;
  }
  const page_check check = check_page(*page, asked.campaign.threads);
  for (const std::string& each : check.notes) std::printf("note: %s\n", each.c_str());
  for (const std::string& each : check.errors) std::printf("%s\n", each.c_str());
  std::printf("%zu mutants, %zu checkers that alone see some: %s\n", all_mutants().size(),
              check.sole_catchers.size(), check.errors.empty() ? "all caught" : "FAILED");
  return check.errors.empty() ? clean : broken;
}
#endif

}  // namespace

int run(int count, char** words) {
  const auto asked = parse(count, words);
  if (!asked) {
    std::fputs(usage.data(), stderr);
    return misused;
  }
#ifdef HOLDFAST_MUTANTS
  if (asked->mutant == core::mutant::none && !asked->seed) {
    const bool check = !asked->page.empty() && !asked->write_page;
    return check ? check_mutants(*asked) : search_mutants(*asked);
  }
  activate(asked->mutant);
  std::string program = "build/sim_mutants";
  if (asked->mutant != core::mutant::none) {
    program.append(" --mutant ").append(name_of(asked->mutant));
  }
#else
  if (!asked->page.empty() || asked->mutant != core::mutant::none) {
    std::fputs("this program has no mutants: build/sim_mutants has\n", stderr);
    return misused;
  }
  const std::string program = "build/sim";
#endif
  return asked->seed ? show_seed(*asked) : show_campaign(*asked, program);
}

}  // namespace holdfast::sim

int main(int count, char** words) { return holdfast::sim::run(count, words); }
