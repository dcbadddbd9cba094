// What is done to a client process from inside, while it runs: its wall clock is set, and it is stopped or
// killed at a system call. See lab/clock.
#pragma once

#include <holdfast/clock.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::torture {

// Where the library that does this is: beside the program or where it was installed; none: not
// found.
std::optional<std::filesystem::path> shifted_clock_library();

// The arguments that start a program with a clock of its own, which the file sets; without the
// library, the program's own arguments.
std::vector<std::string> with_clock(const std::filesystem::path& file,
                                    std::vector<std::string> words);
std::vector<std::string> with_clock_of(const std::filesystem::path& library,
                                       const std::filesystem::path& file,
                                       std::vector<std::string> words);
void set_clock(const std::filesystem::path& file, duration shift);
// The signal comes at the n-th of its next calls; 0: no more.
void strike_at_call(const std::filesystem::path& file, std::int64_t calls, int signal);
// When it came.
std::optional<time_point> struck_at(const std::filesystem::path& file);

}  // namespace holdfast::torture
