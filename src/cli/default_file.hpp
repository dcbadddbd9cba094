// The embedded store's file where no URL is given:
// ${XDG_STATE_HOME:-$HOME/.local/state}/holdfast/holdfast.db
#pragma once

#include "cli/complaint.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

// Makes its folder (0700) where that is missing. Usage error: neither variable is set.
outcome<std::string> default_file();

// A path as the path of a URL: what means something in a URL is escaped.
std::string in_url(std::string_view path);

}  // namespace holdfast::cli
