#include "sim/checkers/fifo.hpp"

namespace holdfast::sim {

// Its lease has ended, or may have: clocks differ by up to a hundredth.
bool fifo::lapsed(const waiter& each, moment now) const {
  return now - each.heard > world().waiter_lease - world().waiter_lease / 50;
}

bool fifo::excused(std::int32_t claim, const waiter& earlier, moment now) const {
  return earlier.uncertain || unreachable_.contains(earlier.process) || lapsed(earlier, now) ||
         offers_.silent(claim, earlier.resource, now);
}

void fifo::granted(const record& line) {
  const auto self = waiters_.find(line.claim);
  const bool checked = self == waiters_.end() || !self->second.uncertain;
  const std::uint64_t place = self == waiters_.end() ? next_place_ : self->second.place;
  for (const auto& [claim, earlier] : waiters_) {
    if (earlier.resource != line.resource || !earlier.fair || earlier.place >= place) continue;
    if (!checked || excused(claim, earlier, line.at)) continue;
    fail(line.at, "resource " + std::to_string(line.resource) + ": claim " +
                      std::to_string(line.claim) + " was granted before claim " +
                      std::to_string(claim) + " that came earlier");
  }
  if (self != waiters_.end()) waiters_.erase(self);
}

void fifo::see(const record& line) {
  if (void_) return;
  judge(line);
  offers_.see(line);
}

void fifo::judge(const record& line) {
  switch (line.kind) {
    case what::server_queued: {
      const auto [found, made] = waiters_.try_emplace(line.claim);
      // Seen before and alive all the time: it keeps its place, whatever the server did to it.
      if (!made && !lapsed(found->second, line.at)) return;
      found->second = {line.process, line.resource, next_place_++, line.fair, false, line.at};
      return;
    }
    case what::server_granted:
      granted(line);
      return;
    case what::executed_attempt:
    case what::executed_renewal: {
      const auto found = waiters_.find(line.claim);
      if (found == waiters_.end()) return;
      if (!lapsed(found->second, line.at)) {
        found->second.heard = line.at;
      } else if (line.kind == what::executed_renewal &&
                 line.number == static_cast<int>(spi::hold_state::lost)) {
        waiters_.erase(found);
      } else {
        // Its lease ended about now: only the server knows whether it kept its place.
        found->second.uncertain = true;
        found->second.heard = line.at;
      }
      return;
    }
    case what::server_left:
      waiters_.erase(line.claim);
      return;
    case what::unreachable:
      unreachable_.insert(line.process);
      return;
    case what::reachable:
      unreachable_.erase(line.process);
      return;
    case what::state_lost:
      waiters_.clear();
      return;
    case what::clock_jumped:
      void_ = true;
      return;
    default:
      return;
  }
}

}  // namespace holdfast::sim
