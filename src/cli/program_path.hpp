// Where a command's program is, found out before a lock is taken for it.
#pragma once

#include "cli/complaint.hpp"

#include <string>

namespace holdfast::cli {

// As a shell looks for it: by PATH unless it has a '/'. Complains with 127 if there is none, with
// 126 if there is one that cannot be executed.
outcome<std::string> find_program(const std::string& name);

}  // namespace holdfast::cli
