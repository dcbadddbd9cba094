#include "core/exposition.hpp"

namespace holdfast::core {

void exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void exposition::label(std::string_view name, std::string_view value, char before) {
  text_.append(1, before).append(name).append("=\"");
  for (const char each : value) {
    if (each == '\\' || each == '"') text_ += '\\';
    if (each == '\n') {
      text_ += "\\n";
    } else {
      text_ += each;
    }
  }
  text_ += '"';
}

void exposition::sample(std::string_view suffix, const labels& with, std::string_view value) {
  text_.append(family_).append(suffix);
  char before = '{';
  for (const auto& [name, text] : common_) label(name, text, std::exchange(before, ','));
  for (const auto& [name, text] : with) label(name, text, std::exchange(before, ','));
  if (before == ',') text_ += '}';
  text_.append(" ").append(value).append("\n");
}

void exposition::sample(const labels& with, std::uint64_t value) {
  sample({}, with, std::to_string(value));
}

std::string seconds_text(std::uint64_t nanoseconds) {
  constexpr std::uint64_t per_second = 1'000'000'000;
  std::string text = std::to_string(nanoseconds / per_second);
  std::uint64_t rest = nanoseconds % per_second;
  if (rest == 0) return text;
  std::string digits = std::to_string(per_second + rest).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return text + "." + digits;
}

}  // namespace holdfast::core
