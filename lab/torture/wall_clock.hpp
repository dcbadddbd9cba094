// The wall clock of a client process, set while it runs: see lab/clock.
#pragma once

#include <holdfast/clock.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::torture {

// Where the library is that does it, beside the program or where it was installed; none: nowhere.
std::optional<std::filesystem::path> shifted_clock_library();

// The words that start a program with a clock of its own, which the file sets; without the library,
// the program's own words.
std::vector<std::string> with_clock(const std::filesystem::path& file,
                                    std::vector<std::string> words);
void set_clock(const std::filesystem::path& file, duration shift);

}  // namespace holdfast::torture
