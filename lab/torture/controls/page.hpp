// docs/broken-locks.md: every broken lock and the history that convicts it, as
// a run made it.
#pragma once

#include "torture/controls/control.hpp"
#include "torture/judge.hpp"

#include <string>
#include <vector>

namespace holdfast::torture {

struct played {
  const control* what = nullptr;
  verdict given;
};

// The finding of the checker that should convict it; none: it was not
// convicted.
const finding* conviction(const played& one);

std::string page_of(const std::vector<played>& all);

// The line of the page that says who convicts it.
std::string sentence(const control& what);

}  // namespace holdfast::torture
