// Text for people's eyes: names and payloads were written by others, and a terminal obeys what it
// is shown.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Control characters, marks that change the direction of writing, and what is not UTF-8 become
// \x.. or \u.... escapes.
std::string plain(std::string_view text);

// Columns padded to the widest cell, two spaces between; rows end with '\n'. Right-aligned are the
// columns listed.
std::string columns(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<std::size_t>& right = {});

// "2026-02-03T04:05:06.789Z"
std::string rfc3339(std::chrono::system_clock::time_point when);

}  // namespace holdfast::cli
