// How long things took: counts by length, with a precision of one part in 128 for any length.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::cli {

// Not thread-safe: every thread has its own, and they are merged at the end. May lie in memory that processes share.
class histogram {
 public:
  // Everything longer counts as this long; the greatest is still known exactly.
  static constexpr duration longest{(std::int64_t{1} << 41) - 1};  // 36 minutes

  void record(duration span) noexcept;
  void merge(const histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] duration greatest() const noexcept { return greatest_; }
  [[nodiscard]] duration mean() const noexcept;
  // The length that this share of all did not exceed: 0.5 is the median. Zero if nothing was
  // recorded.
  [[nodiscard]] duration within(double share) const noexcept;

  // The cells that are not empty, with their counts.
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

inline std::size_t histogram::cell_of(duration span) noexcept {
  const auto length =
      static_cast<std::uint64_t>(std::clamp(span.count(), std::int64_t{0}, longest.count()));
  const auto width = static_cast<unsigned>(std::bit_width(length));
  const unsigned coarse = width > fine + 1 ? width - fine - 1 : 0;
  return (static_cast<std::size_t>(coarse) << fine) + static_cast<std::size_t>(length >> coarse);
}

inline void histogram::record(duration span) noexcept {
  ++counts_[cell_of(span)];
  ++count_;
  sum_ += span;
  greatest_ = std::max(greatest_, span);
}

inline void histogram::merge(const histogram& other) noexcept {
  for (std::size_t i = 0; i < cells_in_all; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  greatest_ = std::max(greatest_, other.greatest_);
}

inline duration histogram::mean() const noexcept {
  return count_ == 0 ? duration{0} : sum_ / static_cast<std::int64_t>(count_);
}

inline duration histogram::top(std::size_t cell) noexcept {
  const std::size_t coarse = std::max(cell >> fine, std::size_t{1}) - 1;
  const std::uint64_t base = cell - (coarse << fine);
  return duration{static_cast<std::int64_t>(((base + 1) << coarse) - 1)};
}

inline duration histogram::within(double share) const noexcept {
  if (count_ == 0) return duration{0};
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= std::max(wanted, std::uint64_t{1})) return std::min(top(i), greatest_);
  }
  return greatest_;
}

inline std::vector<std::pair<std::size_t, std::uint64_t>> histogram::cells() const {
  std::vector<std::pair<std::size_t, std::uint64_t>> filled;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) filled.emplace_back(i, counts_[i]);
  }
  return filled;
}

}  // namespace holdfast::cli
