// A latch: no wait returns before as many count-downs were requested as were set, and none counts
// twice.
#pragma once

#include "sim/checker.hpp"

#include <map>

namespace holdfast::sim {

class latch_count final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "latch"; }

  void see(const record& line) override {
    latch& about = latches_[line.resource];
    switch (line.kind) {
      case what::latch_set:
        about = {line.number, 0};
        return;
      case what::latch_down:
        ++about.asked;
        return;
      case what::latch_told:
        if (about.asked < about.set) {
          fail(line.at, "resource " + std::to_string(line.resource) + ": a wait returned after " +
                            std::to_string(about.asked) + " of " + std::to_string(about.set) +
                            " downs");
        }
        return;
      case what::latch_read:
        if (line.number < about.set - about.asked) {
          fail(line.at, "resource " + std::to_string(line.resource) + ": the count is " +
                            std::to_string(line.number) + " after " + std::to_string(about.asked) +
                            " of " + std::to_string(about.set) + " downs");
        }
        return;
      case what::state_lost:
        latches_.clear();
        return;
      default:
        return;
    }
  }

 private:
  struct latch {
    std::int64_t set = 0;
    std::int64_t asked = 0;
  };
  std::map<std::int32_t, latch> latches_;
};

}  // namespace holdfast::sim
