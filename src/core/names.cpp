#include "core/names.hpp"

#include <algorithm>
#include <cstdint>

namespace holdfast::core {

namespace {

struct code_point {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: not valid UTF-8
};

// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
code_point decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return {};
  std::uint32_t value = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, length};
}

bool is_control(std::uint32_t value) { return value < 0x20 || (value >= 0x7f && value < 0xa0); }

}  // namespace

result<void> check_name(std::string_view name) {
  if (name.empty()) return failure(errc::invalid, "a name must not be empty");
  if (name.size() > longest_name) {
    return failure(errc::invalid,
                   "a name has at most 512 bytes, this one " + std::to_string(name.size()));
  }
  for (std::size_t at = 0; at < name.size();) {
    const code_point next = decode(name, at);
    if (next.length == 0) {
      return failure(errc::invalid,
                     "a name must be UTF-8; byte " + std::to_string(at + 1) + " is not");
    }
    if (is_control(next.value)) {
      return failure(errc::invalid, "a name must not have control characters; byte " +
                                        std::to_string(at + 1) + " is one");
    }
    at += next.length;
  }
  return {};
}

result<void> check_space(std::string_view space) {
  if (space.size() > longest_space) {
    return failure(errc::invalid, "a namespace has at most 64 bytes");
  }
  const bool plain = std::all_of(space.begin(), space.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (!plain) return failure(errc::invalid, "a namespace has only letters, digits, '.', '_', '-'");
  return {};
}

std::string clean_payload(std::string_view payload) {
  std::string clean;
  for (std::size_t at = 0; at < payload.size();) {
    const code_point next = decode(payload, at);
    const std::size_t length = std::max<std::size_t>(1, next.length);
    if (clean.size() + length > longest_payload) break;
    if (next.length == 0 || is_control(next.value)) {
      clean += '?';
    } else {
      clean += payload.substr(at, length);
    }
    at += length;
  }
  return clean;
}

}  // namespace holdfast::core
