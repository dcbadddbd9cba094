// What the store knows of one claim of this process: where its key is, and what it watches.
#pragma once

#include "stores/etcd/blocker_watches.hpp"
#include "stores/etcd/lease_keeper.hpp"
#include "stores/etcd/line.hpp"
#include "stores/etcd/watch_hub.hpp"
#include "stores/queued/queued_claim.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::etcd {

// Guarded by the store's mutex.
struct entry : stores::queued_claim {
  std::shared_ptr<lease_keeper> life;
  std::string prefix;  // of the resource
  std::string id;      // of its key: its own, or that of a claim before it
  claim_kind kind{};

  // In etcd; `created` is 0 where its key is not there, as far as we know, and owner_key() tells of an adopted one
  // whose it is.
  std::string key;
  std::int64_t fenced = 0;
  spi::mode mode{};      // as changed
  bool changed = false;  // there is a key for its mode
  // A request that makes a key was not answered, and may arrive when the claim is over: its key is not used again.
  bool late = false;
  bool removing = false;      // a request that removes the key was sent
  bool handing_over = false;  // a request that gives the key to another claim was sent

  // Watches; null or 0: none.
  std::shared_ptr<blocker_watches::interest> watch;  // on what is in the way
  std::string watched;                               // its key
  watch_hub::watch_id own_watch = 0;
  std::vector<watch_hub::watch_id> others_watches;
  int looks_again = 0;  // of a try, for a look that is older than a removal of ours

  [[nodiscard]] bool nothing_made() const noexcept { return created == 0 && !uncertain; }
  [[nodiscard]] fence_token fence() const noexcept { return stores::fence_of(fenced); }
  [[nodiscard]] duration life_time() const { return life->time(); }
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

}  // namespace holdfast::etcd
