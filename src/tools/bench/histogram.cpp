#include "tools/bench/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace holdfast::cli {

std::size_t histogram::cell_of(duration span) noexcept {
  const auto length =
      static_cast<std::uint64_t>(std::clamp(span.count(), std::int64_t{0}, longest.count()));
  const auto width = static_cast<unsigned>(std::bit_width(length));
  const unsigned coarse = width > fine + 1 ? width - fine - 1 : 0;
  return (static_cast<std::size_t>(coarse) << fine) + static_cast<std::size_t>(length >> coarse);
}

void histogram::record(duration span) noexcept {
  ++counts_[cell_of(span)];
  ++count_;
  sum_ += span;
  greatest_ = std::max(greatest_, span);
}

void histogram::merge(const histogram& other) noexcept {
  for (std::size_t i = 0; i < cells_in_all; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  greatest_ = std::max(greatest_, other.greatest_);
}

duration histogram::mean() const noexcept {
  return count_ == 0 ? duration{0} : sum_ / static_cast<std::int64_t>(count_);
}

duration histogram::top(std::size_t cell) noexcept {
  const std::size_t coarse = std::max(cell >> fine, std::size_t{1}) - 1;
  const std::uint64_t base = cell - (coarse << fine);
  return duration{static_cast<std::int64_t>(((base + 1) << coarse) - 1)};
}

duration histogram::within(double share) const noexcept {
  if (count_ == 0) return duration{0};
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= std::max(wanted, std::uint64_t{1})) return std::min(top(i), greatest_);
  }
  return greatest_;
}

std::vector<std::pair<std::size_t, std::uint64_t>> histogram::cells() const {
  std::vector<std::pair<std::size_t, std::uint64_t>> filled;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) filled.emplace_back(i, counts_[i]);
  }
  return filled;
}

}  // namespace holdfast::cli
