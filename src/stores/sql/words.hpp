// Takes a line of words apart.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace holdfast::sql {

// Not thread-safe. What is missing or no number is noted, and asked for once at the end.
class words {
 public:
  explicit words(std::string_view line) : rest_(line) {}

  std::string_view word() {
    if (rest_.empty()) fine_ = false;
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view first = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return first;
  }
  template <class Number = std::int64_t>
  Number number() {
    const std::string_view text = word();
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc{} || end != text.data() + text.size()) fine_ = false;
    return value;
  }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  [[nodiscard]] bool fine() const noexcept { return fine_; }
  void spoil() noexcept { fine_ = false; }

 private:
  std::string_view rest_;
  bool fine_ = true;
};

}  // namespace holdfast::sql
