// One process of a measurement: `holdfast bench worker`, which the command starts and nobody else.
#pragma once

namespace holdfast::cli {

// Its orders come by stdin, its answers go to stdout (bench_message.hpp).
int bench_worker();

}  // namespace holdfast::cli
