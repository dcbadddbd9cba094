// Mutants: deliberate defects of the shipped sources, one at a time, each of which some checker must
// see. They exist only in programs whose engine is compiled with HOLDFAST_MUTANTS; see core/mutant.hpp.
#pragma once

#include "core/mutant.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

// All but `none`, in the order of the enumeration.
const std::vector<core::mutant>& all_mutants();
std::string_view name_of(core::mutant mutant) noexcept;
std::string_view defect_of(core::mutant mutant) noexcept;  // not of none
std::optional<core::mutant> mutant_named(std::string_view name) noexcept;

// Later worlds have this defect. Call it before any of them starts.
void activate(core::mutant mutant) noexcept;

// Within how many seeds every mutant must be caught.
inline constexpr std::uint64_t mutant_seeds = 200'000;

struct mutant_verdict {
  core::mutant mutant = core::mutant::none;
  std::optional<std::uint64_t> seeds;  // until the first was caught
  std::uint64_t tried = 0;
  std::map<std::string_view, std::uint64_t> checkers;  // how many seeds each saw it in
};

// Runs seeds from the first on until enough of them have failed to tell which checkers see it.
mutant_verdict judge(core::mutant mutant, std::uint32_t threads);

// Runs only a few seeds, starting at one that is known to show it; `seeds` is then the one that
// did.
mutant_verdict judge_near(core::mutant mutant, std::uint64_t seed, std::uint32_t threads);

// Checkers without which some mutant would have gone unseen.
std::vector<std::string_view> sole_catchers(const std::vector<mutant_verdict>& verdicts);

// There must be at least this many: fewer would mean that some checkers are idle.
inline constexpr std::size_t fewest_sole_catchers = 6;

}  // namespace holdfast::sim
