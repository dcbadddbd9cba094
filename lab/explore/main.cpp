// explore: every order of events of small worlds. explore_mutants: whether it sees every defect.
#include "explore/search.hpp"
#include "sim/mutants.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace holdfast::explore {

namespace {

constexpr int clean = 0;
constexpr int broken = 1;
constexpr int misused = 2;

constexpr std::string_view usage =
    "usage: explore [--small] [--world NAME] [--jobs T] [--states N]\n"
    "       explore --world NAME --route CHOICES     shows one run\n"
    "       explore_mutants [--mutant NAME]... [as explore]\n";

// Enough for the defects that these worlds can show at all, and few enough to wait for.
[[maybe_unused]] constexpr std::uint64_t states_per_mutant = 300'000;

struct command {
  bool small = false;
  std::string world;
  std::string route;
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  search_limits limits;
  std::vector<core::mutant> mutants;  // which must be caught
};

bool take_option(std::string_view option, std::string_view value, command& made) {
  const auto number = [&](std::uint64_t& into) {
    const auto end = value.data() + value.size();
    return std::from_chars(value.data(), end, into).ptr == end && into > 0;
  };
  if (option == "--jobs") return number(made.threads);
  if (option == "--states") return number(made.limits.states);
  if (option == "--world") {
    made.world = value;
    return scenario_named(value) != nullptr;
  }
  if (option == "--route") {
    made.route = value;
    return route_in(value).has_value();
  }
  if (option == "--mutant") {
    const auto found = sim::mutant_named(value);
    if (found) made.mutants.push_back(*found);
    return found.has_value();
  }
  return false;
}

std::optional<command> parse(int count, char** words) {
  command made;
#ifdef HOLDFAST_MUTANTS
  made.limits.states = states_per_mutant;
#endif
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--small") {
      made.small = true;
    } else if (i + 1 >= count || !take_option(word, words[++i], made)) {
      return std::nullopt;
    }
  }
  return made;
}

std::vector<const scenario*> chosen(const command& asked) {
  std::vector<const scenario*> some;
  for (const scenario& each : all_scenarios()) {
    if (!asked.world.empty() && each.name != asked.world) continue;
    if (!asked.small || each.small) some.push_back(&each);
  }
  return some;
}

int show(const command& asked) {
  const auto broke = replay(*scenario_named(asked.world), *route_in(asked.route),
                            [](const std::string& line) { std::puts(line.c_str()); });
  for (const sim::violation& each : broke) {
    std::printf("broken: %s: %s\n", std::string(each.checker).c_str(), each.message.c_str());
  }
  return broke.empty() ? clean : broken;
}

unsigned long long wide(std::uint64_t number) { return number; }

void print(const scenario& world, const search_result& found) {
  std::printf("%-28s %10llu states %11llu transitions %8llu runs, depth %4u, %7.1f s%s\n",
              std::string(world.name).c_str(), wide(found.states), wide(found.transitions),
              wide(found.runs), found.deepest, found.took.count(),
              !found.violations.empty() ? ", BROKEN"
              : found.complete          ? ", complete"
              : found.bounded           ? ", stopped at its bound"
                                        : ", TOO DEEP");
  for (const sim::violation& each : found.violations) {
    std::printf("  %s, at %.6f s: %s\n", std::string(each.checker).c_str(),
                static_cast<double>(each.at.count()) / 1e9, each.message.c_str());
  }
  if (!found.violations.empty()) {
    std::printf("  again: --world %s --route %s\n", std::string(world.name).c_str(),
                to_string(found.broken).c_str());
  }
  std::fflush(stdout);
}

int explore_all(const command& asked) {
  const auto worlds = chosen(asked);
  const auto begun = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  search_result sum;
  std::size_t bounded = 0;
  bool good = true;
  const auto work = [&] {
    for (std::size_t i = next++; i < worlds.size(); i = next++) {
      const search_result found = search(*worlds[i], asked.limits);
      const std::lock_guard lock(mutex);
      print(*worlds[i], found);
      sum.states += found.states;
      sum.transitions += found.transitions;
      sum.runs += found.runs;
      bounded += found.bounded ? 1 : 0;
      good = good && (found.complete || found.bounded) && found.violations.empty();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(asked.threads, worlds.size()); ++i) {
      threads.emplace_back(work);
    }
    work();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf(
      "%zu worlds, %zu stopped at a bound, %llu states, %llu transitions, %llu runs, %.1f s: %s\n",
      worlds.size(), bounded, wide(sum.states), wide(sum.transitions), wide(sum.runs), took.count(),
      good ? "nothing broken" : "FAILED");
  return good ? clean : broken;
}

#ifdef HOLDFAST_MUTANTS
// A few states of every world, in several orders, before more of them: most defects show early in
// the world that was made for them. A world that was explored completely is not explored again.
std::optional<std::pair<const scenario*, search_result>> catch_in(
    const std::vector<const scenario*>& worlds, std::uint64_t most) {
  std::set<const scenario*> complete;
  for (std::uint64_t states = 500;; states *= 8) {
    for (const scenario* world : worlds) {
      for (const std::uint32_t order : {1U, 0U, 2U, 3U, 4U, 5U, 6U, 7U}) {
        if (complete.contains(world)) continue;
        search_result found = search(*world, {.states = std::min(states, most), .order = order});
        if (!found.violations.empty()) return std::pair(world, std::move(found));
        if (found.complete) complete.insert(world);
      }
    }
    if (states >= most) return std::nullopt;
  }
}

// Each must be caught: those that are named, or all.
int explore_mutants(const command& asked) {
  bool all_caught = true;
  const auto worlds = chosen(asked);
  std::puts("| mutant | world | states until caught | caught by |\n|---|---|---|---|");
  for (const core::mutant each : asked.mutants.empty() ? sim::all_mutants() : asked.mutants) {
    sim::activate(each);
    const auto caught = catch_in(worlds, asked.limits.states);
    all_caught = all_caught && caught.has_value();
    const std::string name(sim::name_of(each));
    if (caught) {
      std::printf("| %s | %s | %llu | %s |\n", name.c_str(),
                  std::string(caught->first->name).c_str(), wide(caught->second.states),
                  std::string(caught->second.violations.front().checker).c_str());
    } else {
      std::printf("| %s | NOT CAUGHT | | |\n", name.c_str());
    }
    std::fflush(stdout);
  }
  return all_caught ? clean : broken;
}
#endif

}  // namespace

int run(int count, char** words) {
  const auto asked = parse(count, words);
  if (!asked || (!asked->route.empty() && asked->world.empty())) {
    std::fputs(usage.data(), stderr);
    return misused;
  }
#ifdef HOLDFAST_MUTANTS
  if (asked->route.empty()) return explore_mutants(*asked);
  if (!asked->mutants.empty()) sim::activate(asked->mutants.front());
#endif
  return asked->route.empty() ? explore_all(*asked) : show(*asked);
}

}  // namespace holdfast::explore

int main(int count, char** words) { return holdfast::explore::run(count, words); }
