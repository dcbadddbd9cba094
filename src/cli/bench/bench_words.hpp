// The options of bench.
#pragma once

#include "cli/bench/bench_arguments.hpp"
#include "cli/complaint.hpp"
#include "cli/raw_arguments.hpp"

namespace holdfast::cli {

outcome<void> read_bench(const raw_arguments& raw, bench_arguments& into);

}  // namespace holdfast::cli
