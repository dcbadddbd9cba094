#include "cli/number_text.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace holdfast::cli {

tl::expected<std::uint32_t, std::string> parse_number(std::string_view text, std::uint32_t least,
                                                      std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size() || number < least ||
      number > most) {
    return tl::unexpected<std::string>("is a whole number from " + std::to_string(least) + " to " +
                                       std::to_string(most));
  }
  return number;
}

namespace {

struct unit {
  std::string_view name;
  duration length;
};

// Larger first. "ms" is looked for before "m".
constexpr std::array units{
    unit{"h", std::chrono::hours(1)},
    unit{"m", std::chrono::minutes(1)},
    unit{"s", std::chrono::seconds(1)},
    unit{"ms", std::chrono::milliseconds(1)},
};

// In all. Long enough for anybody.
constexpr duration longest = std::chrono::hours(24 * 3660);

tl::unexpected<std::string> wrong(const char* why) {
  return tl::unexpected<std::string>(std::string(why) + "; write 250ms, 10s, 2m or 1h30m");
}

// The index of the unit that the text begins with, or units.size().
std::size_t unit_at(std::string_view text) {
  if (text.starts_with("ms")) return 3;
  for (std::size_t i = 0; i < 3; ++i) {
    if (text.starts_with(units[i].name)) return i;
  }
  return units.size();
}

}  // namespace

tl::expected<duration, std::string> parse_duration(std::string_view text) {
  if (text.empty()) return wrong("needs a duration");
  duration sum{0};
  std::size_t allowed = 0;  // the largest unit that may still come
  while (!text.empty()) {
    std::int64_t count = 0;
    if (text.front() == '-' || text.front() == '+') return wrong("must not have a sign");
    if (text.front() < '0' || text.front() > '9') return wrong("is not a duration");
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (problem != std::errc{}) return wrong("is too long a duration");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return wrong("needs a unit");
    const std::size_t which = unit_at(text);
    if (which == units.size()) {
      return wrong(text.front() == '.' ? "must not have a fraction" : "has an unknown unit");
    }
    if (which < allowed) return wrong("must have each unit once, the larger first");
    if (count > (longest - sum) / units[which].length) return wrong("is too long a duration");
    sum += units[which].length * count;
    allowed = which + 1;
    text.remove_prefix(units[which].name.size());
  }
  return sum;
}

std::string to_text(duration span) {
  std::string text;
  for (const unit& one : units) {
    const auto count = span / one.length;
    if (count <= 0) continue;
    text += std::to_string(count) + std::string(one.name);
    span -= one.length * count;
  }
  return text.empty() ? "0s" : text;
}

std::string with_digits(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

}  // namespace holdfast::cli
