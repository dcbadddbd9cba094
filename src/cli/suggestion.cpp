#include "cli/suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace holdfast::cli {

namespace {

// How many letters are wrong, missing, too many, or changed places with their neighbour. Three rows
// of the usual table: a change of places looks two rows back.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t wrong = one[i - 1] == other[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t letters_a_mistake = 3;
  const auto letters = std::count_if(word.begin(), word.end(), [](char c) { return c != '-'; });
  // At most one mistake in three letters, so that a word of one or two is never guessed at.
  std::size_t least = static_cast<std::size_t>(letters) / letters_a_mistake + 1;
  std::string nearest;
  for (const std::string& one : known) {
    const std::size_t far = distance(word, one);
    if (far >= least) continue;
    least = far;
    nearest = one;
  }
  return nearest.empty() ? nearest : "; did you mean " + nearest + "?";
}

}  // namespace holdfast::cli
