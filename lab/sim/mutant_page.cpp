#include "sim/mutant_page.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::sim {

namespace {

constexpr std::string_view heading =
    "| mutant | what is wrong | seeds until caught | caught by |\n";

std::string to_row(const mutant_verdict& each) {
  std::string text = "| ";
  text.append(name_of(each.mutant)).append(" | ").append(defect_of(each.mutant)).append(" | ");
  text += each.seeds ? std::to_string(*each.seeds) : "not caught in " + std::to_string(each.tried);
  text += " | ";
  std::vector<std::pair<std::string_view, std::uint64_t>> seen(each.checkers.begin(),
                                                               each.checkers.end());
  std::stable_sort(seen.begin(), seen.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  const std::string_view mark = seen.size() == 1 ? "**" : "";
  for (std::size_t i = 0; i < seen.size(); ++i) {
    text.append(i > 0 ? ", " : "").append(mark).append(seen[i].first).append(mark);
  }
  return text + " |\n";
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view each : names) text.append(text.empty() ? "" : ", ").append(each);
  return text;
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view around = " *";
  const auto from = text.find_first_not_of(around);
  if (from == std::string_view::npos) return {};
  return std::string(text.substr(from, text.find_last_not_of(around) - from + 1));
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(at));
    parts.push_back(trimmed(part));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return parts;
}

const page_row* row_of(core::mutant mutant, const std::vector<page_row>& rows) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const page_row& each) {
    return each.mutant == name_of(mutant);
  });
  return found == rows.end() ? nullptr : &*found;
}

mutant_verdict look_again(core::mutant mutant, const page_row& row, std::uint32_t threads,
                          page_check& check) {
  mutant_verdict verdict = judge_near(mutant, row.seed, threads);
  if (verdict.seeds != row.seed) {
    check.notes.push_back(row.mutant + ": seed " + std::to_string(row.seed) +
                          " no longer shows it; write the page again");
    if (!verdict.seeds) verdict = judge(mutant, threads);
  }
  if (!verdict.seeds) check.errors.push_back(row.mutant + ": not caught");
  return verdict;
}

}  // namespace

std::string to_table(const std::vector<mutant_verdict>& verdicts) {
  std::string text(heading);
  text += "|---|---|---|---|\n";
  for (const mutant_verdict& each : verdicts) text += to_row(each);
  const auto alone = sole_catchers(verdicts);
  text += "\nCheckers that were the only ones to see some mutant: " + std::to_string(alone.size()) +
          " (" + listed(alone) + ").\n";
  return text;
}

std::string with_table(std::string_view page, std::string_view table) {
  return std::string(page.substr(0, page.find(heading))).append(table);
}

std::vector<page_row> read_page(std::string_view page) {
  std::vector<page_row> rows;
  bool in_table = false;
  while (!page.empty()) {
    const std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(page.size(), line.size() + 1));
    if (!line.starts_with("|")) {
      in_table = false;
    } else if (line.starts_with("|-")) {
      in_table = true;
    } else if (in_table) {
      auto cells = split(line.substr(1), '|');
      cells.resize(4);
      page_row row{cells[0], cells[1], 0, split(cells[3], ',')};
      std::from_chars(cells[2].data(), cells[2].data() + cells[2].size(), row.seed);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<std::string> differences(const std::vector<page_row>& rows) {
  std::vector<std::string> found;
  for (const page_row& each : rows) {
    if (!mutant_named(each.mutant)) found.push_back(each.mutant + ": no such mutant");
    if (each.seed == 0 || each.checkers.empty()) found.push_back(each.mutant + ": not caught");
  }
  for (const core::mutant mutant : all_mutants()) {
    const page_row* row = row_of(mutant, rows);
    if (row == nullptr) {
      found.push_back(std::string(name_of(mutant)) + ": not on the page");
    } else if (row->defect != defect_of(mutant)) {
      found.push_back(row->mutant + ": described otherwise than in the sources");
    }
  }
  if (rows.size() > all_mutants().size()) found.emplace_back("some mutant is on the page twice");
  return found;
}

page_check check_page(std::string_view page, std::uint32_t threads) {
  const auto rows = read_page(page);
  page_check check;
  check.errors = differences(rows);
  if (!check.errors.empty()) return check;
  std::vector<mutant_verdict> verdicts;
  for (const core::mutant mutant : all_mutants()) {
    const page_row& row = *row_of(mutant, rows);
    mutant_verdict verdict = look_again(mutant, row, threads, check);
    // A checker that sees it only in other worlds than these counts too.
    if (row.checkers.size() > 1) verdict.checkers.clear();
    for (const auto& [name, times] : verdict.checkers) {
      if (verdict.seeds != row.seed || row.checkers.front() == name) continue;
      check.errors.push_back(row.mutant + ": also seen by " + std::string(name));
    }
    verdicts.push_back(std::move(verdict));
  }
  check.sole_catchers = sole_catchers(verdicts);
  if (check.sole_catchers.size() < fewest_sole_catchers) {
    check.errors.push_back("too few checkers are the only ones to see some mutant: " +
                           listed(check.sole_catchers));
  }
  return check;
}

}  // namespace holdfast::sim
