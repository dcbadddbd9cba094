// Whole numbers and durations on the command line.
#pragma once

#include <holdfast/clock.hpp>

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::cli {

// Digits only, within the limits. The error is the end of the sentence "--max ...".
tl::expected<std::uint32_t, std::string> parse_number(std::string_view text, std::uint32_t least,
                                                      std::uint32_t most);

// Durations as people write them: 250ms, 10s, 2m, 1h30m.
//
// Integers with ms, s, m, h, larger first, each once; no sign, no fraction, no bare number. The
// error says what is wrong with it, as the end of the sentence "--ttl ...".
tl::expected<duration, std::string> parse_duration(std::string_view text);

// "1h30m", "250ms"; "0s". What is below a millisecond is cut off.
std::string to_text(duration span);

// With so many digits behind the point.
std::string with_digits(double value, int digits);

}  // namespace holdfast::cli
