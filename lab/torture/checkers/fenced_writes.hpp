// A resource that refuses older fences accepts every write of a holder whose lock was valid before
// and after the write: else a fence was smaller than an earlier one, or two holders were valid. And
// what it accepts has growing fences.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::torture {

class fenced_writes final : public sim::checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "fenced writes"; }

  void see(const sim::record& line) override {
    switch (line.kind) {
      case sim::what::validity_began:
        if (line.number == 0) sure_.insert(line.hold);
        return;
      case sim::what::state_lost:
        sure_.clear();
        return;
      case sim::what::write_accepted:
        accepted(line);
        return;
      case sim::what::write_refused:
        if (line.number == 1 && sure_.contains(line.hold)) refused(line);
        return;
      default:
        return;
    }
  }

 private:
  struct seen {
    std::uint64_t fence = 0;
    std::int32_t hold = sim::nobody;
  };

  void accepted(const sim::record& line) {
    seen& last = greatest_[line.resource];
    // Two clients record at their own pace what the resource accepted: only writes of holds that
    // were valid throughout are in order here too.
    if (line.number == 1 && line.fence < last.fence && sure_.contains(line.hold)) {
      fail(line.at,
           "resource " + std::to_string(line.resource) + ": a write with fence " +
               std::to_string(line.fence) + " was accepted after one with " +
               std::to_string(last.fence),
           {last.hold, line.hold});
    }
    if (line.number == 1 && line.fence > last.fence) last = {line.fence, line.hold};
  }
  void refused(const sim::record& line) {
    const seen& last = greatest_[line.resource];
    fail(line.at,
         "resource " + std::to_string(line.resource) + ": a write with fence " +
             std::to_string(line.fence) + " was refused although its hold was valid, after " +
             std::to_string(last.fence),
         {last.hold, line.hold});
  }

  std::set<std::int32_t> sure_;            // holds that no stated limit excuses
  std::map<std::int32_t, seen> greatest_;  // by resource
};

}  // namespace holdfast::torture
