// broken_locks: plays every broken lock and prints the page about them. Exit 1
// if one is not convicted.
#include "torture/controls/page.hpp"

#include <cstdio>
#include <exception>

int main() {
  using namespace holdfast::torture;
  try {
    servers all;
    std::vector<played> scenes;
    bool convicted = true;
    for (const control& each : controls_of_the_lab()) {
      scenes.push_back({&each, judge(each.play(all))});
      convicted = convicted && conviction(scenes.back()) != nullptr;
    }
    std::fputs(page_of(scenes).c_str(), stdout);
    return convicted ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "broken_locks: %s\n", problem.what());
    return 2;
  }
}
