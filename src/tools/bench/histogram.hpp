// How long things took: counts by length, each length known to one part in 128, whatever its size.
#pragma once

#include <holdfast/clock.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::cli {

// Not thread-safe: every thread has its own, and they are merged at the end. May lie in memory that processes share.
class histogram {
 public:
  // Everything longer counts as so long; the greatest is known exactly all the same.
  static constexpr duration longest{(std::int64_t{1} << 41) - 1};  // 36 minutes

  void record(duration span) noexcept;
  void merge(const histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] duration greatest() const noexcept { return greatest_; }
  [[nodiscard]] duration mean() const noexcept;
  // What so large a share of all stayed within: 0.5 is the median. Zero where nothing was recorded.
  [[nodiscard]] duration within(double share) const noexcept;

  // The filled cells and what they hold.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::uint64_t>> cells() const;

  // The longest that a cell stands for.
  [[nodiscard]] static duration top(std::size_t cell) noexcept;

 private:
  // Two lengths of the same power of two lie in one of 128 cells.
  static constexpr unsigned fine = 7;
  static constexpr std::size_t cells_in_all =
      (static_cast<std::size_t>(41 - fine) << fine) + (std::size_t{1} << fine);

  static std::size_t cell_of(duration span) noexcept;

  std::array<std::uint32_t, cells_in_all> counts_{};
  std::uint64_t count_ = 0;
  duration sum_{0};
  duration greatest_{0};
};

}  // namespace holdfast::cli
