// What came for a claim while somebody was feeding its machine, in the order of its coming. One has
// its place inside: mostly there is one, the answer that a store gives before its call returns.
//
// Not thread-safe.
#pragma once

#include "core/claim_machine.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/function.hpp>

#include <utility>
#include <vector>

namespace holdfast::core {

class inbox {
 public:
  using input = spi::function<claim_machine::orders(time_point now)>;

  [[nodiscard]] bool empty() const noexcept { return !first_; }

  void add(input step) {
    if (first_) {
      others_.push_back(std::move(step));
    } else {
      first_ = std::move(step);
    }
  }

  // Not of an empty one.
  [[nodiscard]] input take() {
    input step = std::exchange(first_, nullptr);
    if (!others_.empty()) {
      first_ = std::move(others_.front());
      others_.erase(others_.begin());
    }
    return step;
  }

 private:
  input first_;                // empty: none at all
  std::vector<input> others_;  // behind it
};

}  // namespace holdfast::core
