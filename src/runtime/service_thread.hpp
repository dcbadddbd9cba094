// Threads of the runtime: no signal is handled on them, and they end without waiting for themselves.
#pragma once

#include <holdfast/spi/runtime.hpp>

#include <memory>
#include <thread>

namespace holdfast::runtime {

// Throws std::system_error if the thread cannot be made. The name is at most 15 bytes.
std::unique_ptr<std::jthread> start_service(const char* name, spi::task body);

// Joins it, or detaches it if the caller is that thread. Null: nothing to do.
void end_service(std::unique_ptr<std::jthread> thread) noexcept;

}  // namespace holdfast::runtime
