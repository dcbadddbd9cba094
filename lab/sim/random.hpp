// The one source of chance in a world: splitmix64. Parts of a world draw from streams of their own,
// so that leaving one part out changes little in the others, which is what shrinking needs.
#pragma once

#include <holdfast/clock.hpp>

#include <cstdint>

namespace holdfast::sim {

class random_source {
 public:
  explicit constexpr random_source(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  // Uniform in [0, count); count > 0.
  constexpr std::uint64_t below(std::uint64_t count) noexcept { return next() % count; }

  // Uniform in [low, high].
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  constexpr duration between(duration low, duration high) noexcept {
    return duration(between(low.count(), high.count()));
  }

  constexpr bool chance(std::uint32_t per_thousand) noexcept { return below(1000) < per_thousand; }

  // A stream of its own for a part with this number.
  [[nodiscard]] constexpr random_source branch(std::uint64_t part) const noexcept {
    random_source mixed(state_ ^ (part * 0xd1342543de82ef95U + 0x632be59bd9b4e019U));
    return random_source(mixed.next());
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
