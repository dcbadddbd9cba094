// What a Redis server answers: a value of RESP2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

struct reply {
  enum class type : std::uint8_t { nil, status, error, integer, string, array };

  type kind = type::nil;
  std::int64_t integer = 0;
  std::string text;  // of a status, an error (without '-') or a string
  std::vector<reply> elements;

  [[nodiscard]] bool is(type which) const noexcept { return kind == which; }
  [[nodiscard]] bool is_error() const noexcept { return kind == type::error; }
  // The first word of an error: "NOSCRIPT".
  [[nodiscard]] bool is_error(std::string_view code) const noexcept {
    return is_error() && text.starts_with(code) &&
           (text.size() == code.size() || text[code.size()] == ' ');
  }
  // Text of a status or a string; else empty.
  [[nodiscard]] std::string_view words() const noexcept {
    return kind == type::status || kind == type::string ? std::string_view(text)
                                                        : std::string_view();
  }

  friend bool operator==(const reply&, const reply&) = default;
};

}  // namespace holdfast::redis
