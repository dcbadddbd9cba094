// docs/mutants.md: its table is written from the verdicts of a full search, and read back to check
// again, in seconds, the seeds that it names. So the page cannot list other mutants than the
// sources have.
#pragma once

#include "sim/mutants.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {

struct page_row {
  std::string mutant;
  std::string defect;
  std::uint64_t seed = 0;  // 0: the row names none
  std::vector<std::string> checkers;
};

// The table and the line below it.
std::string to_table(const std::vector<mutant_verdict>& verdicts);

// The page with its table, which is the last thing on it, replaced by this one.
std::string with_table(std::string_view page, std::string_view table);

// The rows of its table.
std::vector<page_row> read_page(std::string_view page);

// The mutants that only the page or only the sources have, and those that the page reports as not
// caught.
std::vector<std::string> differences(const std::vector<page_row>& rows);

struct page_check {
  std::vector<std::string> errors;
  std::vector<std::string> notes;  // what is out of date, but not wrong
  std::vector<std::string_view> sole_catchers;
};

// Runs every mutant at the page's seed, and one that is not caught there from the first seed on.
page_check check_page(std::string_view page, std::uint32_t threads);

}  // namespace holdfast::sim
