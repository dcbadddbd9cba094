// docs/mutants.md agrees with the sources; sim_mutants checks whether the mutants are caught.
#include "sim/mutant_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::sim {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string page() {
  const char* const source = std::getenv("HOLDFAST_SOURCE_DIR");
  if (source == nullptr) return "";
  std::ifstream file(std::string(source) + "/docs/mutants.md");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

mutant_verdict caught(core::mutant mutant, std::uint64_t seed,
                      std::map<std::string_view, std::uint64_t> by) {
  return {mutant, seed, seed, std::move(by)};
}

}  // namespace

TEST(mutant_page, lists_the_mutants_of_the_sources) {
  // Broken: the page lists defects that are not tried, or not all that are.
  EXPECT_THAT(differences(read_page(page())), IsEmpty());
}

TEST(mutant_page, a_mutant_that_is_missing_or_unknown_or_described_otherwise_is_reported) {
  // Broken: the check of the page cannot fail.
  auto rows = read_page(page());
  ASSERT_FALSE(rows.empty());
  rows.front().mutant = "no-such-mutant";
  rows.back().defect = "something else";
  const std::string first(name_of(all_mutants().front()));
  const std::string last(name_of(all_mutants().back()));
  EXPECT_THAT(differences(rows),
              ElementsAre("no-such-mutant: no such mutant", first + ": not on the page",
                          last + ": described otherwise than in the sources"));
}

TEST(mutant_page, a_mutant_that_was_not_caught_is_said) {
  // Broken: a page that was written from a failed search passes.
  auto rows = read_page(page());
  ASSERT_FALSE(rows.empty());
  rows.front().seed = 0;
  EXPECT_THAT(differences(rows), ElementsAre(rows.front().mutant + ": not caught"));
}

TEST(mutant_page, reads_back_what_was_written) {
  // Broken: `make test` uses other seeds than those that were found.
  const auto table = to_table({caught(core::mutant::margin_ignored, 7, {{"a", 1}, {"b", 3}}),
                               caught(core::mutant::renewal_creates, 9, {{"c", 2}})});
  const auto rows = read_page(with_table("text\n" + to_table({}) + "old\n", table));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].mutant, "margin-ignored");
  EXPECT_EQ(rows[0].seed, 7U);
  EXPECT_THAT(rows[0].checkers, ElementsAre("b", "a"));
  EXPECT_THAT(rows[1].checkers, ElementsAre("c"));
}

TEST(mutant_page, counts_checkers_that_alone_saw_some_mutant) {
  // Broken: the proof that no checker is idle.
  EXPECT_THAT(sole_catchers({caught(core::mutant::margin_ignored, 7, {{"a", 1}, {"b", 3}}),
                             caught(core::mutant::renewal_creates, 9, {{"c", 2}}),
                             caught(core::mutant::check_then_arm, 9, {{"c", 2}})}),
              ElementsAre("c"));
}

}  // namespace holdfast::sim
