// How long things took: counts by length, each length known to one part in 128, whatever its size.
#pragma once

#include <holdfast/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::cli {

// Not thread-safe: every thread has its own, and they are merged at the end.
class histogram {
 public:
  // Everything longer counts as so long; the greatest is known exactly all the same.
  static constexpr duration longest{(std::int64_t{1} << 41) - 1};  // 36 minutes

  void record(duration span);
  void merge(const histogram& other);

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] duration greatest() const noexcept { return greatest_; }
  [[nodiscard]] duration mean() const noexcept;
  // What so large a share of all stayed within: 0.5 is the median. Zero where nothing was recorded.
  [[nodiscard]] duration within(double share) const noexcept;

  // The filled cells and what they hold, and the way back, to pass it on to another process.
  using cell = std::pair<std::size_t, std::uint64_t>;
  [[nodiscard]] std::vector<cell> cells() const;
  [[nodiscard]] duration sum() const noexcept { return sum_; }
  // False: these are no cells of a histogram.
  [[nodiscard]] bool add(const std::vector<cell>& cells, duration sum, duration greatest);

  // The longest that a cell stands for.
  [[nodiscard]] static duration top(std::size_t cell) noexcept;

 private:
  std::vector<std::uint32_t> counts_{};  // empty: nothing yet
  std::uint64_t count_ = 0;
  duration sum_{0};
  duration greatest_{0};
};

}  // namespace holdfast::cli
