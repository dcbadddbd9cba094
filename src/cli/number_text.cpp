#include "cli/number_text.hpp"

#include <charconv>

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

}  // namespace holdfast::cli
