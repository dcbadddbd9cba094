// What a store with a queue of nodes (ZooKeeper) or keys (etcd) knows of one claim of this process,
// whatever the engine: what is requested of it, and when it ends. Each engine adds where its node
// or key is and what it watches.
#pragma once

#include "net/patience.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::stores {

// Guarded by the store's mutex. One flow at a time works on it (`running`); a verb leaves a note and sets `dirty`.
//
//   phase    means
//   placing  its node or key is not made, or it is not known where it stands
//   waiting  it is in the queue
//   held     it holds
//   over     forgotten by the store; flows that still work on it end
struct queued_claim {
  enum class phase : std::uint8_t { placing, waiting, held, over };

  struct change {
    spi::mode to{};
    spi::completion<spi::granted> done;
  };
  // From this claim to a detached one, or from a detached one to this.
  struct handover {
    spi::claim_id from;
    spi::claim_ptr to;
    spi::completion<spi::granted> done;
  };

  spi::claim_ptr claim;
  // Not in a wakeup_registry: it is called as the phase says, and both are guarded by the store's mutex.
  std::shared_ptr<spi::wakeup> wakeup;
  phase where = phase::placing;

  // On the server.
  std::int64_t owner = 0;    // the session or lease by which it lives
  std::int64_t created = 0;  // czxid or revision
  bool uncertain = false;    // a request that makes a node or key was not answered
  bool adopted = false;      // it was, and perhaps still is, another claim's

  // What is requested of it.
  bool running = false;
  bool dirty = false;
  net::patience until{};  // of the latest verb
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<change> changes;
  std::vector<handover> handovers;  // only in stores that can hand claims on
  bool unanswered = false;          // as the core says: leave a tombstone
  bool ending = false;              // its time is over: to be removed, without being asked

  bool own_watched = false;  // changes of its node or key are reported
  bool wanted = false;       // somebody waits behind us
  bool revoked = false;

  time_point granted_at{};
  time_point end_at = time_point::max();  // when it is removed if nothing is heard of it

  // What is to be done next.
  struct job {
    bool leaves = false;
    bool places = false;
    std::optional<queued_claim::change> change;
    std::optional<queued_claim::handover> handover;
    net::patience until;
  };

  [[nodiscard]] bool permit() const noexcept { return claim->mode == spi::mode::permit; }
  [[nodiscard]] bool leaving() const noexcept { return !leaves.empty() || ending; }
  // For a look that no caller asked for.
  [[nodiscard]] duration time_to_look() const {
    return std::clamp<duration>(claim->ttl / 3, std::chrono::milliseconds(500),
                                std::chrono::seconds(5));
  }
  // When a hold ends that has lasted `since` and was worth `ttl` when it was seen.
  [[nodiscard]] time_point end_of_hold(time_point seen, time_point since, duration ttl) const {
    return (claim->renewed ? seen + std::max(claim->ttl, ttl) : since + claim->ttl) +
           claim->lock_delay;
  }

  // Removes it from the requests.
  [[nodiscard]] job next_job() {
    job next;
    next.until = until;
    next.leaves = leaving();
    if (next.leaves) return next;
    if (!handovers.empty()) {
      next.handover = std::move(handovers.front());
      handovers.erase(handovers.begin());
    } else if (!changes.empty()) {
      next.change = std::move(changes.front());
      changes.erase(changes.begin());
    } else {
      next.places = !adopted;  // what was adopted has its place
      return next;
    }
    dirty = !handovers.empty() || !changes.empty() || !attempts.empty();
    return next;
  }
};

// The count of a latch: as stored, or as it should become.
struct queued_latch {
  std::optional<std::uint32_t> value;  // none: unset, or forgotten by now
  duration life{};
  std::string set_by;
  std::string mark{};       // the count-down that makes it so
  bool marked = false;      // the requested change has been counted
  bool has_claims = false;  // the name is in use as something else
};

// The fence of a claim: the zxid (ZooKeeper) or revision (etcd) that made it, which grows across
// the whole cluster and outlives the name, with room behind it for the hand-overs inside a process:
// more than a grant reserves (one, and 32 hand-overs). An ensemble's epoch has 26 bits left.
inline constexpr unsigned fence_room = 6;

constexpr fence_token fence_of(std::int64_t created) noexcept {
  return fence_token(static_cast<std::uint64_t>(created) << fence_room);
}

inline constexpr duration recheck_after = std::chrono::seconds(1);
// How long a waiter that is not heard from keeps its place in the queue.
inline constexpr duration waiter_lease = std::chrono::seconds(30);

inline spi::blocked blocked_by(std::string who, bool queued) {
  spi::blocked answer;
  answer.queued = queued;
  answer.recheck_after = recheck_after;
  answer.blocker = std::move(who);
  return answer;
}

inline spi::server_time server_time_of(time_point at) {
  return spi::server_time(at.time_since_epoch());
}

}  // namespace holdfast::stores
