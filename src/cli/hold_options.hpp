// The options and words of run, elect and multi run.
#pragma once

#include "cli/arguments.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

outcome<void> check_name(const std::string& name, std::string_view topic);

outcome<void> read_hold(const raw_arguments& raw, hold_arguments& into);

// How long before the end of validity the child must be dead: a fourth of a very short lease.
duration kill_margin(duration ttl) noexcept;

}  // namespace holdfast::cli
