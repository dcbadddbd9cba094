// Names of resources: what is allowed, and how stores write them into narrower alphabets.
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::core {

inline constexpr std::size_t longest_name = 512;
inline constexpr std::size_t longest_space = 64;
inline constexpr std::size_t longest_payload = 256;

// 1 to 512 bytes of valid UTF-8 without control characters (U+0000-1F, U+007F-9F); else invalid,
// saying what is wrong and at which byte.
result<void> check_name(std::string_view name);

// 0 to 64 bytes of [A-Za-z0-9._-].
result<void> check_space(std::string_view space);

// At most 256 bytes; invalid UTF-8 and control characters become '?'. For people only.
std::string clean_payload(std::string_view payload);

}  // namespace holdfast::core
