// How long something took, repeatedly, and the median and the tail of that.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace bench {

using stopwatch = std::chrono::steady_clock;  // the same in all processes

inline double microseconds(stopwatch::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Sorts them. `part`: 0.5 is the median.
inline double percentile(std::vector<double>& values, double part) {
  if (values.empty()) throw std::runtime_error("nothing was measured");
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// In microseconds, each.
template <class Work>
void note_times(std::vector<double>& times, int count, Work&& work) {
  for (int i = 0; i < count; ++i) {
    const auto start = stopwatch::now();
    work();
    times.push_back(microseconds(stopwatch::now() - start));
  }
}

}  // namespace bench
