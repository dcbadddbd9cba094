// Counts forks in a child handler of pthread_atfork().
#include "runtime/fork_guard.hpp"

#include <pthread.h>

#include <atomic>

namespace holdfast::runtime {

namespace {

// The one global of the runtime: a property of the process, not of any object in it.
constinit std::atomic<std::uint64_t> generation{0};

// At load time, not at first use: a fork in the middle of a first use would leave the child with a
// half-made guard.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint64_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace holdfast::runtime
