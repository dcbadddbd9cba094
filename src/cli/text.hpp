// Numbers, durations and times as people write and read them, tables, and text that is safe to show
// on a terminal.
#pragma once

#include <holdfast/clock.hpp>

#include <tl/expected.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Digits only, within the limits. The error is the end of the sentence "--max ...".
tl::expected<std::uint32_t, std::string> parse_number(std::string_view text, std::uint32_t least,
                                                      std::uint32_t most);

// Durations as people write them: 250ms, 10s, 2m, 1h30m.
//
// Integers with ms, s, m, h, larger first, each once; no sign, no fraction, no bare number. The
// error says what is wrong with it, as the end of the sentence "--ttl ...".
tl::expected<duration, std::string> parse_duration(std::string_view text);

// "1h30m", "250ms"; "0s". Fractions of a millisecond are cut off.
std::string to_text(duration span);

// With this many digits after the decimal point.
std::string with_digits(double value, int digits);

// Names and payloads were written by others, and a terminal obeys what it displays: control
// characters, marks that change the writing direction, and what is not UTF-8 become \x.. or \u....
// escapes.
std::string plain(std::string_view text);

// Its first characters, at most this many.
std::string cut(const std::string& text, std::size_t characters);

// "a, b"
std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");

// Columns padded to the widest cell, two spaces between; rows end with '\n'. Right-aligned are the
// columns listed.
std::string columns(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<std::size_t>& right = {});

// "2026-02-03T04:05:06.789Z"
std::string rfc3339(std::chrono::system_clock::time_point when);

}  // namespace holdfast::cli
