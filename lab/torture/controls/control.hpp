// Broken locks: those of the literature, and some that only look right. Each is small
// enough to read and runs against real servers, and the judge must convict it: a judge that
// cannot is no evidence.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/run_record.hpp"

#include <string_view>
#include <vector>

namespace holdfast::torture {

struct control {
  std::string_view name;
  std::string_view algorithm;  // what it does
  std::string_view defect;     // what is wrong with that
  std::string_view remedy;     // what holdfast does instead
  std::string_view checker;    // that convicts it
  run_record (*play)(servers& all);
};

const std::vector<control>& controls_of_the_lab();

}  // namespace holdfast::torture
