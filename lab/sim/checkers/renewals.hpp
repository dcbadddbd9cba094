// Which renewals are evidence about a hold: those sent after it was granted, while no other renewal
// of its claim was in flight, so that it is certain which of them was answered.
#pragma once

#include "sim/record.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace holdfast::sim {

class renewals {
 public:
  struct answer_of {
    std::int32_t hold = nobody;
    spi::hold_state state{};
    bool renewed = true;  // the hold renews itself
    duration ttl{};
  };

  // What a record says about a hold, if it answers such a renewal.
  std::optional<answer_of> see(const record& line) {
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
        claims_[line.claim].held = {line.hold, {}, line.number != 0, line.until};
        claims_[line.claim].since = line.at;
        return std::nullopt;
      case what::validity_ended:
      case what::lost_told:
      case what::release_invoked:
      case what::detach_invoked:
        claims_[line.claim].held.hold = nobody;
        return std::nullopt;
      case what::renewal_sent:
        claims_[line.claim].alone = claims_[line.claim].under_way++ == 0;
        claims_[line.claim].sent = line.at;
        return std::nullopt;
      case what::renewal_answered:
        return answered(claims_[line.claim], line);
      default:
        return std::nullopt;
    }
  }

 private:
  struct claim {
    answer_of held;
    moment since{};  // of the hold
    moment sent{};   // the last renewal
    int under_way = 0;
    bool alone = true;  // the last was sent when none was in flight
  };

  static std::optional<answer_of> answered(claim& about, const record& line) {
    --about.under_way;
    if (!about.alone || about.held.hold == nobody || about.sent <= about.since) {
      return std::nullopt;
    }
    answer_of told = about.held;
    told.state = static_cast<spi::hold_state>(line.number);
    return told;
  }

  std::map<std::int32_t, claim> claims_;
};

}  // namespace holdfast::sim
