// What --help prints: first what it is for, then examples, then the options.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::cli {

// `topic`: a command as typed, "run" or "multi run"; the overview where it is empty.
std::string help_about(std::string_view topic);

}  // namespace holdfast::cli
