// The words of `holdfast torture`, understood.
#pragma once

#include "cli/arguments.hpp"

namespace holdfast::cli {

outcome<void> read_torture(const raw_arguments& raw, torture_arguments& into);

}  // namespace holdfast::cli
