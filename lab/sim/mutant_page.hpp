// docs/mutants.md: its table is written from the verdicts of a full search, and read back to look
// again, in seconds, at the seeds that it names. So the page cannot speak of other mutants than the
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

// The page with this table for the one it had, which is the last thing on it.
std::string with_table(std::string_view page, std::string_view table);

// The rows of its table.
std::vector<page_row> read_page(std::string_view page);

// Where the page and the sources speak of different mutants, or the page of one that was not caught.
std::vector<std::string> differences(const std::vector<page_row>& rows);

struct page_check {
  std::vector<std::string> errors;
  std::vector<std::string> notes;  // what is out of date, but not wrong
  std::vector<std::string_view> sole_catchers;
};

// Runs every mutant at the page's seed, and one that is not caught there from the first seed on.
page_check check_page(std::string_view page, std::uint32_t threads);

}  // namespace holdfast::sim
