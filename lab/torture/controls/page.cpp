#include "torture/controls/page.hpp"

#include <algorithm>

namespace holdfast::torture {

namespace {

constexpr const char* preface =
    R"(# Broken locks, and the histories that convict them

Each of these is a lock that people use or that looks right. Each is played against real servers by `build/broken_locks`,
its clients' steps are recorded as those of `holdfast torture` are, and the same judge looks at them. The tests fail if
one of them is not convicted any more: a judge that cannot convict is no evidence. This page is made by
`make broken-locks`; times are in seconds from the start of the scene.
)";

}  // namespace

const finding* conviction(const played& one) {
  const auto& found = one.given.violations;
  const auto it = std::find_if(found.begin(), found.end(), [&](const finding& each) {
    return each.checker == one.what->checker;
  });
  return it == found.end() ? nullptr : &*it;
}

std::string sentence(const control& what) {
  return "Convicted by **" + std::string(what.checker) + "**:";
}

std::string page_of(const std::vector<played>& all) {
  std::string text = preface;
  for (const played& each : all) {
    const control& what = *each.what;
    text += "\n## " + std::string(what.name) + "\n" + std::string(what.algorithm) +
            "\n\n*What breaks:* " + std::string(what.defect) + "\n\n*What holdfast does:* " +
            std::string(what.remedy) + "\n\n" + sentence(what) + "\n```\n";
    const finding* found = conviction(each);
    text += found == nullptr ? "not convicted\n" : to_text(*found);
    text += "```\n";
  }
  return text;
}

}  // namespace holdfast::torture
