// Hexadecimal digits, and the percent-encoding of names and URLs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::core {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

inline void append_hex(std::string& to, unsigned char byte) {
  to += hex_digits[byte >> 4U];
  to += hex_digits[byte & 15U];
}

inline std::string hex_of(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char each : bytes) append_hex(text, static_cast<unsigned char>(each));
  return text;
}

// All 16 digits.
inline std::string hex_of(std::uint64_t number) {
  std::string text;
  text.reserve(16);
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    append_hex(text, static_cast<unsigned char>(number >> (shift - 8)));
  }
  return text;
}

// Of a digit in either case; -1 if it is none.
constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte at two digits; -1 if they are not two digits.
constexpr int hex_byte(std::string_view text) noexcept {
  const int high = text.size() < 2 ? -1 : hex_value(text[0]);
  const int low = high < 0 ? -1 : hex_value(text[1]);
  return low < 0 ? -1 : high * 16 + low;
}

inline void append_escaped(std::string& to, char c) {
  to += '%';
  append_hex(to, static_cast<unsigned char>(c));
}

// With every %XX decoded; nothing if a '%' is not followed by two digits.
inline std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const int byte = hex_byte(text.substr(i + 1));
    if (byte < 0) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

// A path for a URL: what could end it is escaped.
inline std::string path_in_url(std::string_view path) {
  std::string text;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      append_escaped(text, c);
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace holdfast::core
