// The fence, or fencing token: a number that comes with every grant of a name and keeps growing.
// The protected resource keeps the greatest number it has seen and refuses smaller ones. That
// stops a holder that was paused beyond the end of its lease.
#pragma once

#include <compare>
#include <cstdint>

namespace holdfast {

// Compare fences only between grants of one name on one engine; across names or engines their order
// means nothing.
class fence_token {
 public:
  constexpr fence_token() noexcept = default;
  constexpr explicit fence_token(std::uint64_t value) noexcept : value_(value) {}

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

  friend constexpr auto operator<=>(fence_token, fence_token) noexcept = default;

 private:
  std::uint64_t value_ = 0;
};

}  // namespace holdfast
