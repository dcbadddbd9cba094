#include "sim/checkers/leak.hpp"

#include <holdfast/result.hpp>

#include <algorithm>

namespace holdfast::sim {

void leak::answered(claim& about, const record& line) {
  switch (static_cast<answer>(line.number)) {
    case answer::unanswered:
      about.unanswered = true;
      return;
    case answer::turned_away:
    case answer::refused:
      if (!about.unanswered) about.absent = true;
      return;
    default:
      return;
  }
}

void leak::deny_afterlife(const record& line) {
  const claim& about = claims_[line.claim];
  if (about.left && !about.forgotten) {
    fail(line.at, "claim " + std::to_string(line.claim) + " was left, and the server has it again");
  }
  if (about.given_away && !about.forgotten) {
    fail(line.at,
         "claim " + std::to_string(line.claim) + " was detached, and the server has it again");
  }
}

void leak::see(const record& line) {
  switch (line.kind) {
    case what::attempt_sent: {
      claim& about = claims_[line.claim];
      about.process = line.process;
      about.attempted = true;
      about.absent = false;
      about.sent = line.at;
      about.ttl = line.until;
      return;
    }
    case what::attempt_answered:
      answered(claims_[line.claim], line);
      return;
    case what::renewal_sent:
      claims_[line.claim].sent = line.at;
      if (claims_[line.claim].leaving != moment{}) {
        fail(line.at, "claim " + std::to_string(line.claim) + " is renewed after it was left");
      }
      if (claims_[line.claim].detached) {
        fail(line.at, "claim " + std::to_string(line.claim) + " is renewed after it was detached");
      }
      return;
    case what::detach_invoked:
      claims_[line.claim].detached = true;
      return;
    case what::detach_answered:
      // Without an answer it is withdrawn, to be safe.
      if (line.number != static_cast<int>(errc::unavailable)) claims_[line.claim].absent = true;
      claims_[line.claim].given_away = line.number == 0;
      return;
    case what::renewal_answered:
      if (line.number == static_cast<int>(spi::hold_state::lost)) claims_[line.claim].absent = true;
      return;
    case what::acquire_granted:
    case what::adopt_granted:
      claims_[line.claim].stays_blocked = line.lock_delay > duration{0};
      return;
    case what::validity_ended:
      // Also a hold that ended with its notice, before it ran out and before its holder was
      // notified.
      if (claims_[line.claim].stays_blocked) claims_[line.claim].absent = true;
      return;
    case what::lost_told:
      // By its own clock it had not run out: the engine said so.
      if (line.number != 0) claims_[line.claim].absent = true;
      return;
    case what::leave_sent:
      claims_[line.claim].leaving = std::max(line.at, moment(1));
      return;
    case what::left:
      claims_[line.claim].left = true;
      return;
    case what::server_queued:
    case what::server_granted:
      deny_afterlife(line);
      return;
    case what::resumed:
      resumed_[line.process] = line.at;
      return;
    case what::killed:
    case what::closed:
      gone_.insert(line.process);
      return;
    case what::state_lost:
    case what::clock_jumped:
      // Withdrawals are forgotten too: a late duplicate may come back.
      for (auto& [number, each] : claims_) each.forgotten = true;
      return;
    default:
      return;
  }
}

void leak::finish(moment now) {
  for (const auto& [number, each] : claims_) {
    if (!each.attempted || gone_.contains(each.process)) continue;
    // Clocks differ; and a client that was paused until its lease had run out has nothing to
    // withdraw.
    const moment needed = each.sent + each.ttl - each.ttl / 50;
    const moment resumed = resumed_[each.process];
    if (each.leaving == moment{} && !each.absent && resumed < needed) {
      fail(now, "claim " + std::to_string(number) + " of client " + std::to_string(each.process) +
                    " was never left");
    }
    // The last leave may have been waiting for its answer, or for its turn.
    const moment last = std::max(each.leaving, resumed);
    if (!each.left && !each.forgotten && each.leaving != moment{} &&
        last + world().recovery < needed) {
      fail(now, "claim " + std::to_string(number) + " of client " + std::to_string(each.process) +
                    " was given up before its last renewal could have run out");
    }
  }
}

}  // namespace holdfast::sim
