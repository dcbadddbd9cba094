#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace holdfast::cli {

tl::expected<std::uint32_t, std::string> parse_number(std::string_view text, std::uint32_t least,
                                                      std::uint32_t most) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || end != text.data() + text.size() || number < least ||
      number > most) {
    return tl::unexpected<std::string>("must be a whole number from " + std::to_string(least) +
                                       " to " + std::to_string(most));
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

// The total. Long enough for anybody.
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

namespace {

struct character {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: not UTF-8
};

character next_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return {};
  std::uint32_t value = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  return {value, length};
}

bool is_dangerous(std::uint32_t value) {
  const bool control = value < 0x20 || (value >= 0x7f && value < 0xa0);
  const bool direction = value == 0x61c || (value >= 0x200e && value <= 0x200f) ||
                         (value >= 0x202a && value <= 0x202e) ||
                         (value >= 0x2066 && value <= 0x2069);
  const bool line = value == 0x2028 || value == 0x2029;
  return control || direction || line;
}

std::string escaped(const char* format, unsigned value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }

// Characters, not bytes: good enough for alignment.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

}  // namespace

std::string plain(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const character next = next_of(text);
    if (next.length == 0) {
      shown += escaped("\\x%02x", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (is_dangerous(next.value)) {
      shown += escaped(next.value < 0x100 ? "\\x%02x" : "\\u%04x", next.value);
    } else {
      shown += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return shown;
}

std::string cut(const std::string& text, std::size_t characters) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && characters-- == 0) return text.substr(0, at);
  }
  return text;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& each : words) text.append(text.empty() ? "" : between).append(each);
  return text;
}

std::string columns(const std::vector<std::vector<std::string>>& rows,
                    const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      const bool pushed = std::find(right.begin(), right.end(), i) != right.end();
      line += (i == 0 ? "" : "  ") + (pushed ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string rfc3339(std::chrono::system_clock::time_point when) {
  using namespace std::chrono;
  const auto whole = floor<seconds>(when);
  const auto rest = duration_cast<milliseconds>(when - whole).count();
  const std::time_t seconds_since = system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds_since, &parts);
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>(rest));
  return text.data();
}

}  // namespace holdfast::cli
