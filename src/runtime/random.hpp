// Unpredictable numbers from the kernel, drawn in blocks: a claim id is a capability, and a system
// call per id would be felt.
#pragma once

#include <cstdint>

namespace holdfast::runtime {

// Each thread has a block of its own, of which nothing is given out in a forked child. Throws
// std::system_error if the kernel has no randomness to give.
std::uint64_t random_number();

}  // namespace holdfast::runtime
