// What the store knows of one claim of this process: where its key is, and who waits to hear of it.
#pragma once

#include "net/patience.hpp"
#include "stores/etcd/blocker_watches.hpp"
#include "stores/etcd/lease_keeper.hpp"
#include "stores/etcd/line.hpp"
#include "stores/etcd/watch_hub.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

// Guarded by the store's mutex. One flow at a time works on it (`running`); whoever wants something
// leaves a note and sets `dirty`.
//
//   phase    means
//   placing  its key is not made, or it is not known where it stands
//   waiting  its key is in line
//   held     it holds
//   over     forgotten by the store; flows that are still at it end
struct entry {
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
  std::shared_ptr<spi::wakeup> wakeup;
  std::shared_ptr<lease_keeper> life;
  std::string prefix;  // of the resource
  std::string id;      // of its key: its own, or that of a claim before it
  claim_kind kind{};
  phase where = phase::placing;

  // In etcd.
  std::string key;
  std::int64_t owner = 0;    // the lease by which it lives
  std::int64_t created = 0;  // its revision; 0: it is not there, as far as we know
  std::int64_t fenced = 0;
  spi::mode mode{};        // as changed
  bool changed = false;    // there is a key for its mode
  bool uncertain = false;  // a request that makes a key was not answered
  bool late =
      false;  // one was not, and may arrive when the claim is over: its key is not used again
  bool removing = false;      // a request that removes the key was sent
  bool adopted = false;       // the key was another claim's, perhaps is: owner_key() tells
  bool handing_over = false;  // a request that gives the key to another claim was sent

  // Who waits.
  bool running = false;
  bool dirty = false;
  net::patience until{};  // of the latest verb
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<change> changes;
  std::vector<handover> handovers;
  bool unanswered = false;  // as the core tells: leave a tombstone
  bool ending = false;      // its time is over: to be removed, though nobody asks

  // Watches; null or 0: none.
  std::shared_ptr<blocker_watches::interest> watch;  // on what is in the way
  std::string watched;                               // its key
  watch_hub::watch_id own_watch = 0;
  std::vector<watch_hub::watch_id> others_watches;
  int looks_again = 0;   // of a try, for a look that is older than a removal of ours
  bool guarded = false;  // the two above are wanted
  bool wanted = false;   // somebody waits behind us
  bool revoked = false;

  time_point granted_at{};
  time_point end_at = time_point::max();  // when its key is removed if nothing is heard

  [[nodiscard]] bool permit() const noexcept { return claim->mode == spi::mode::permit; }
  // All keys of it, but for the mode of a reader.
  [[nodiscard]] key_range keys() const { return keys_with(key); }
};

using entry_ptr = std::shared_ptr<entry>;

inline claim_kind kind_of(const spi::claim& claim) {
  if (claim.mode == spi::mode::permit) return claim_kind::permit;
  if (claim.mode == spi::mode::shared) return claim_kind::reader;
  return claim.role == spi::role::writer ? claim_kind::writer : claim_kind::lock;
}

// The lease in etcd outlives ours by what it must: the lock delay, of which the margin for clocks is
// taken too. In whole seconds.
inline duration lease_time(const spi::claim& claim) {
  constexpr duration second = std::chrono::seconds(1);
  const duration wanted = claim.ttl + claim.lock_delay + claim.lock_delay / 50;
  return std::max<duration::rep>((wanted + second - duration{1}) / second, 1) * second;
}

inline constexpr duration recheck_after = std::chrono::seconds(1);
// The place in line of one of whom nothing is heard.
inline constexpr duration waiter_lease = std::chrono::seconds(30);

inline spi::blocked blocked_by(std::string who, bool queued) {
  spi::blocked answer;
  answer.queued = queued;
  answer.recheck_after = recheck_after;
  answer.blocker = std::move(who);
  return answer;
}

}  // namespace holdfast::etcd
