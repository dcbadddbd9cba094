#include "stores/payload.hpp"

#include <charconv>

namespace holdfast::stores {

namespace {

constexpr std::string_view terms_version = "holdfast/1 permits=";
constexpr std::string_view middle = " max=";

constexpr std::size_t shown = 256;  // bytes of what others wrote

// The size of the UTF-8 sequence at the beginning; 0: there is none.
std::size_t sequence_size(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first >> 5U == 6 ? 2 : first >> 4U == 14 ? 3 : 4;
  if (size == 1) return 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((static_cast<std::uint8_t>(text[i]) & 0xc0U) != 0x80) return 0;
  }
  // No overlong forms, no halves of a pair, nothing above U+10FFFF.
  const auto second = static_cast<std::uint8_t>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return size;
}

std::optional<std::uint32_t> take_number(std::string_view& from) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(from.data(), from.data() + from.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  from.remove_prefix(static_cast<std::size_t>(end - from.data()));
  return value;
}

}  // namespace

std::string data_of(const std::string& payload, const permits_data& terms) {
  return payload + "\n" + std::string(terms_version) + std::to_string(terms.permits) +
         std::string(middle) + std::to_string(terms.max);
}

std::string payload_in(std::string_view data) {
  std::string_view rest = data.substr(0, data.find('\n')).substr(0, shown);
  std::string clean;
  while (!rest.empty()) {
    const std::size_t size = sequence_size(rest);
    const auto first = static_cast<std::uint8_t>(rest.front());
    const bool control = first < 0x20 || first == 0x7f ||
                         (first == 0xc2 && size == 2 && static_cast<std::uint8_t>(rest[1]) < 0xa0);
    if (size == 0 || control) {
      clean += '?';
    } else {
      clean += rest.substr(0, size);
    }
    rest.remove_prefix(size == 0 ? 1 : size);
  }
  return clean;
}

std::optional<permits_data> permits_in(std::string_view data) {
  const auto line = data.find('\n');
  if (line == std::string_view::npos) return std::nullopt;
  std::string_view rest = data.substr(line + 1);
  if (!rest.starts_with(terms_version)) return std::nullopt;
  rest.remove_prefix(terms_version.size());
  const auto permits = take_number(rest);
  if (!permits || !rest.starts_with(middle)) return std::nullopt;
  rest.remove_prefix(middle.size());
  const auto max = take_number(rest);
  if (!max) return std::nullopt;
  return permits_data{*permits, *max};
}

}  // namespace holdfast::stores
