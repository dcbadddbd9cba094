// The order of fences under a quorum: a grant that was requested after another had ended has the
// greater one; and a writer's is greater than those of all that ended before it was granted, since
// they were not allowed to overlap. Readers that hold at the same time may share a number.
#pragma once

#include "sim/checker.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::sim {

class quorum_fences final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "fence order"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_invoked:
        requested_[line.acquisition] = ended_;
        return;
      case what::acquire_granted:
        fences_[line.hold] = line.fence;
        check(line);
        return;
      case what::validity_ended:
      case what::release_invoked:
        ended_ = std::max(ended_, fences_[line.hold]);
        return;
      default:
        return;
    }
  }

 private:
  void check(const record& line) {
    const bool writer = line.mode == spi::mode::exclusive;
    const std::uint64_t before = writer ? ended_ : requested_[line.acquisition];
    if (line.fence <= before) {
      fail(line.at, "hold " + std::to_string(line.hold) + " has fence " +
                        std::to_string(line.fence) + " although one with " +
                        std::to_string(before) + " had ended before");
    }
    if (line.mode == spi::mode::exclusive && !exclusive_.insert(line.fence).second) {
      fail(line.at, "fence " + std::to_string(line.fence) + " was given to two writers");
    }
  }

  std::uint64_t ended_ = 0;  // the greatest fence of a hold that ended
  std::map<std::int32_t, std::uint64_t>
      requested_;                                 // by acquisition: the same when it was asked for
  std::map<std::int32_t, std::uint64_t> fences_;  // by hold
  std::set<std::uint64_t> exclusive_;
};

}  // namespace holdfast::sim
