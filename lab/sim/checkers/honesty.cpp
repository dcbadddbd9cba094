#include "sim/checkers/honesty.hpp"

#include <holdfast/result.hpp>

#include <algorithm>

namespace holdfast::sim {

void honesty::server_said(const record& line) {
  claim& about = claims_[line.claim];
  switch (line.kind) {
    case what::server_granted:
    case what::server_changed:
      about.fences.push_back({line.fence, static_cast<std::uint64_t>(line.number)});
      [[fallthrough]];
    case what::server_prolonged:
      about.holds = true;
      about.ended = false;
      about.until = line.until;
      return;
    case what::server_left:
      if (about.kept && world().calm &&
          line.at > *about.taken_at + world().turn + world().round_trip) {
        fail(line.at, "claim " + std::to_string(line.claim) + " was kept longer than a turn");
      }
      about.holds = false;
      about.kept = false;
      return;
    case what::server_forgot:
      about.holds = false;
      about.kept = false;
      about.ended = true;
      return;
    default:
      return;
  }
}

void honesty::granted(const record& line) {
  holds_[line.hold] = line.claim;
  held_[line.hold] = {line.process, line.resource};
  acquisitions_.erase(line.acquisition);
  claim& about = claims_[line.claim];
  if (!about.taken_at) about.taken_at = line.at;
  about.kept = false;
  const auto& fences = about.fences;
  const bool given = std::any_of(fences.begin(), fences.end(), [&](const block& each) {
    return line.fence >= each.first && line.fence < each.first + each.count;
  });
  if (!given) {
    fail(line.at, "hold " + std::to_string(line.hold) + " has fence " + std::to_string(line.fence) +
                      ", which the server did not give to its claim");
  }
}

void honesty::failed(const record& line) {
  const acquisition about = acquisitions_[line.acquisition];
  acquisitions_.erase(line.acquisition);
  const auto code = static_cast<errc>(line.number);
  if (code == errc::lost || code == errc::not_held) {
    fail(line.at, "acquisition " + std::to_string(line.acquisition) + " failed with \"" +
                      std::string(describe(code)) + "\"");
  }
  if (code != errc::busy && code != errc::timed_out) return;
  if (!about.blocked && !about.contended) {
    fail(line.at, "acquisition " + std::to_string(line.acquisition) + " was told \"" +
                      std::string(describe(code)) + "\" although the server never said so");
  }
}

void honesty::lost(const record& line) {
  // number: by its own clock the hold had not run out.
  if (line.number == 0 || void_ || closed_.contains(line.process)) return;
  const claim& about = claims_[holds_[line.hold]];
  if (about.holds && about.until > line.at) {
    fail(line.at, "hold " + std::to_string(line.hold) +
                      " was told that it is lost, although the server has it");
  }
}

void honesty::released(const record& line) {
  claim& about = claims_[holds_[line.hold]];
  // "lost" by its own clock comes before the server's end, and "unavailable" proves nothing.
  if (void_ || line.number != 0) return;
  // Handed over inside the client: another hold has the claim.
  for (const auto& [hold, other] : holds_) {
    if (hold != line.hold && held_.contains(hold) && other == holds_[line.hold]) return;
  }
  if (!about.holds || about.until <= line.at) return;
  about.kept = about.taken_at && line.at < *about.taken_at + world().turn;
  if (!about.kept) {
    fail(line.at, "the release of hold " + std::to_string(line.hold) +
                      " was answered although the server still has its claim");
  }
}

void honesty::finish(moment now) {
  if (!world().calm) return;
  for (const auto& [number, about] : claims_) {
    if (about.kept) fail(now, "claim " + std::to_string(number) + " was kept and never released");
  }
}

void honesty::see(const record& line) {
  switch (line.kind) {
    case what::acquire_invoked: {
      acquisition& made = acquisitions_[line.acquisition];
      made = {line.process, line.resource, false, false};
      for (auto& [number, other] : acquisitions_) {
        if (number == line.acquisition || other.process != line.process ||
            other.resource != line.resource) {
          continue;
        }
        other.contended = true;
        made.contended = true;
      }
      for (const auto& [hold, where] : held_) {
        if (where == std::pair(line.process, line.resource)) made.contended = true;
      }
      return;
    }
    case what::acquire_granted:
    case what::adopt_granted:
      granted(line);
      return;
    case what::acquire_failed:
      failed(line);
      return;
    case what::attempt_answered:
      if (line.number == static_cast<int>(answer::queued) ||
          line.number == static_cast<int>(answer::turned_away)) {
        // Claims that name no acquisition may belong to any acquisition of that client.
        for (auto& [number, each] : acquisitions_) {
          const bool own = line.acquisition == nobody
                               ? each.process == line.process && each.resource == line.resource
                               : number == line.acquisition;
          if (own) each.blocked = true;
        }
      }
      return;
    case what::lost_told:
      lost(line);
      held_.erase(line.hold);
      return;
    case what::release_invoked:
    case what::detach_invoked:
      held_.erase(line.hold);
      return;
    case what::release_answered:
    case what::detach_answered:
      released(line);
      return;
    case what::closed:
      closed_.insert(line.process);
      return;
    case what::state_lost:
    case what::clock_jumped:
      void_ = true;
      return;
    default:
      server_said(line);
      return;
  }
}

}  // namespace holdfast::sim
