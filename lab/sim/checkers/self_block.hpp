// Nobody waits for itself: an acquisition is never held up by an earlier claim of its own, such as
// an attempt whose answer was lost.
#pragma once

#include "sim/checker.hpp"

#include <map>

namespace holdfast::sim {

class self_block final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no self-block"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::server_queued:
        if (line.acquisition != nobody) {
          for (const auto& [claim, other] : claims_) {
            if (claim == line.claim || other.acquisition != line.acquisition) continue;
            if (other.until < line.at) continue;
            fail(line.at, "acquisition " + std::to_string(line.acquisition) + " waits with claim " +
                              std::to_string(line.claim) + " behind its own claim " +
                              std::to_string(claim));
          }
        }
        claims_[line.claim] = {line.acquisition, moment::max()};
        return;
      case what::server_granted:
      case what::server_changed:
      case what::server_prolonged:
        claims_[line.claim] = {line.acquisition, line.until};
        return;
      case what::server_left:
      case what::server_forgot:
        claims_.erase(line.claim);
        return;
      case what::state_lost:
      case what::clock_jumped:
        claims_.clear();
        return;
      default:
        return;
    }
  }

 private:
  struct standing {
    std::int32_t acquisition = nobody;
    moment until{};
  };
  std::map<std::int32_t, standing> claims_;  // that the server has
};

}  // namespace holdfast::sim
