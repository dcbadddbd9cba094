// Holders and waiters as tables for people.
#pragma once

#include <holdfast/spi/store.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::cli {

// Empty where nobody is.
std::string holder_table(const std::vector<spi::holder>& holders,
                         std::chrono::system_clock::time_point now);
std::string waiter_table(const std::vector<spi::waiting>& waiters);

}  // namespace holdfast::cli
