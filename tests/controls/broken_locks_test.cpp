// The judge convicts every broken lock of the literature, and the page about them matches.
#include "torture/controls/page.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace holdfast::torture {
namespace {

// In one test: they share servers whose start takes longer than the locks themselves.
TEST(broken_locks, are_all_convicted_and_are_on_the_page) {
  // Broken: a harness that cannot fail, and so proves nothing.
  const char* root = std::getenv("HOLDFAST_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/docs/broken-locks.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  servers all;
  for (const control& each : controls_of_the_lab()) {
    SCOPED_TRACE(each.name);
    const played scene{&each, judge(each.play(all))};
    const finding* found = conviction(scene);
    ASSERT_NE(found, nullptr) << "not convicted by " << each.checker;
    EXPECT_FALSE(found->slice.empty());
    const std::size_t at = page.find("\n## " + std::string(each.name) + "\n");
    ASSERT_NE(at, std::string::npos) << "not in the page: make broken-locks";
    const std::string section = page.substr(at, page.find("\n## ", at + 1) - at);
    EXPECT_NE(section.find(sentence(each)), std::string::npos);
    EXPECT_EQ(section.find("not convicted"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::torture
