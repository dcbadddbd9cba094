// Unpredictable numbers from the kernel, drawn in blocks: a claim id is a capability, and a system
// call per id would cost too much.
#pragma once

#include <cstdint>

namespace holdfast::runtime {

// Each thread has a block of its own, which a forked child does not use. Throws std::system_error
// if the kernel provides no randomness.
std::uint64_t random_number();

}  // namespace holdfast::runtime
