// Whole numbers on the command line.
#pragma once

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

// Digits only, within the limits. The error is the end of the sentence "--max ...".
tl::expected<std::uint32_t, std::string> parse_number(std::string_view text, std::uint32_t least,
                                                      std::uint32_t most);

}  // namespace holdfast::cli
