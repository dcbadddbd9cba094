#include "cli/plain_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace holdfast::cli {

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

// Characters, not bytes: good enough for alignment.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
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
