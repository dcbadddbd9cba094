// A whole text as a number, or nothing.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace holdfast::redis {

template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace holdfast::redis
