// Offers that nobody accepted, as the server sees them: a waiter that has not been heard from since
// a resource's last such offer was made is skipped there until it is. For the checkers of order.
#pragma once

#include "sim/record.hpp"

#include <algorithm>
#include <map>

namespace holdfast::sim {

class lapsed_offers {
 public:
  void see(const record& line) {
    switch (line.kind) {
      case what::server_granted:
        if (line.offer) offers_[line.claim] = {line.resource, line.at, line.until};
        return;
      case what::executed_attempt:
      case what::executed_renewal:
        heard_[line.claim] = line.at;
        settle(line);
        return;
      case what::server_prolonged:
      case what::server_changed:
      case what::server_forgot:
        settle(line);
        return;
      case what::server_left:
        heard_.erase(line.claim);
        settle(line);
        return;
      case what::state_lost:
        offers_.clear();
        marks_.clear();
        return;
      default:
        return;
    }
  }

  // It was not heard from after the start of an offer of this resource that has run out.
  [[nodiscard]] bool silent(std::int32_t claim, std::int32_t resource, moment now) const {
    const auto heard = heard_.find(claim);
    return heard != heard_.end() && heard->second <= mark(resource, now);
  }

 private:
  struct offer {
    std::int32_t resource = nobody;
    moment since{};
    moment until{};
  };

  [[nodiscard]] moment mark(std::int32_t resource, moment now) const {
    const auto known = marks_.find(resource);
    moment latest = known == marks_.end() ? moment::min() : known->second;
    for (const auto& [claim, each] : offers_) {
      if (each.resource == resource && each.until <= now) latest = std::max(latest, each.since);
    }
    return latest;
  }
  // The offer is over: accepted, returned, or run out.
  void settle(const record& line) {
    const auto found = offers_.find(line.claim);
    if (found == offers_.end()) return;
    const offer over = found->second;
    if (over.until <= line.at) {
      moment& latest = marks_.try_emplace(over.resource, moment::min()).first->second;
      latest = std::max(latest, over.since);
    }
    offers_.erase(found);
  }

  std::map<std::int32_t, offer> offers_;  // by claim: pushed, and its claim not heard from since
  std::map<std::int32_t, moment> marks_;  // by resource
  std::map<std::int32_t, moment> heard_;  // by claim
};

}  // namespace holdfast::sim
