#include "sim/checkers/lost_wakeup.hpp"

#include <algorithm>

namespace holdfast::sim {

// Is anybody waiting for something that has been free for too long?
void lost_wakeup::look(place& at, std::int32_t resource, moment now) {
  moment free_since = at.free_since;
  bool left = at.left;
  for (const auto& [claim, each] : at.holders) {
    free_since = std::max(free_since, each.until + each.lock_delay);
    left = false;
  }
  if (!at.certain || troubles_ > 0 || free_since >= now) return;
  const duration bound =
      world().calm && left ? world().round_trip : world().recheck + world().round_trip;
  for (const auto& [acquisition, each] : waiters_) {
    if (each.resource != resource || paused_.contains(each.process)) continue;
    moment since = std::max({free_since, each.since, calm_since_});
    // Its own client still trusts the hold that the server forgot, and hands over inside.
    const auto forgotten = at.forgotten.find(each.process);
    if (forgotten != at.forgotten.end()) since = std::max(since, forgotten->second);
    if (now - since <= bound) continue;
    fail(now, "resource " + std::to_string(resource) + " was free for " +
                  std::to_string((now - since) / std::chrono::microseconds(1)) +
                  " us while acquisition " + std::to_string(acquisition) + " of client " +
                  std::to_string(each.process) + " waited");
  }
}

void lost_wakeup::forget(place& at) {
  for (const auto& [claim, each] : at.holders) {
    moment& until = at.forgotten[each.process];
    until = std::max(until, each.until);
  }
  at.holders.clear();
}

void lost_wakeup::told(const record& line) {
  const auto found = granted_.find(line.acquisition);
  if (found == granted_.end()) return;
  const duration took = line.at - found->second;
  if (line.kind == what::acquire_granted && took > world().round_trip) {
    fail(line.at, "acquisition " + std::to_string(line.acquisition) + " was granted " +
                      std::to_string(took / std::chrono::microseconds(1)) +
                      " us before it knew, although nothing was disturbed");
  }
  granted_.erase(found);
}

void lost_wakeup::see(const record& line) {
  switch (line.kind) {
    case what::acquire_invoked:
      if (line.number != 0) waiters_[line.acquisition] = {line.process, line.resource, line.at};
      return;
    case what::acquire_granted:
    case what::acquire_failed:
    case what::cancel_invoked:
      look(places_[line.resource], line.resource, line.at);
      waiters_.erase(line.acquisition);
      told(line);
      return;
    case what::server_granted:
    case what::server_changed:
    case what::server_prolonged: {
      place& at = places_[line.resource];
      if (line.kind == what::server_granted) {
        look(at, line.resource, line.at);
        // A claim that no longer waits is being withdrawn; an unknown claim has no acquisition.
        if (world().calm && waiters_.contains(line.acquisition)) {
          granted_.try_emplace(line.acquisition, line.at);
        }
      }
      at.holders[line.claim] = {line.process, line.until, line.lock_delay};
      return;
    }
    case what::server_left:
    case what::server_forgot: {
      place& at = places_[line.resource];
      look(at, line.resource, line.at);
      const auto found = at.holders.find(line.claim);
      if (found == at.holders.end()) return;
      const bool lapsed = found->second.until < line.at || line.kind == what::server_forgot;
      const moment end =
          lapsed ? std::min(line.at, found->second.until) + found->second.lock_delay : line.at;
      if (end >= at.free_since) at.left = !lapsed;
      at.free_since = std::max(at.free_since, end);
      at.holders.erase(found);
      return;
    }
    case what::paused:
      paused_.insert(line.process);
      return;
    case what::resumed:
      paused_.erase(line.process);
      calm_since_ = line.at + world().recovery;
      return;
    case what::killed:
    case what::closed:
      std::erase_if(waiters_,
                    [&](const auto& each) { return each.second.process == line.process; });
      return;
    case what::trouble_began:
      ++troubles_;
      return;
    case what::trouble_ended:
      if (--troubles_ == 0) calm_since_ = line.at + world().recovery;
      return;
    case what::state_lost:
      for (auto& [resource, at] : places_) forget(at);
      return;
    case what::clock_jumped:
      for (auto& [resource, at] : places_) at.certain = false;
      return;
    default:
      return;
  }
}

void lost_wakeup::finish(moment now) {
  for (auto& [resource, at] : places_) look(at, resource, now);
}

}  // namespace holdfast::sim
