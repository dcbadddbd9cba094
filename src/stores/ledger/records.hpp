// What a ledger stores and produces: claims, resources, the named limits of the grant rules, and
// the pushes and events of one step. `book.hpp` has the rules.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::ledgers {

inline constexpr spi::server_time never = spi::server_time::max();
inline constexpr spi::server_time long_ago = spi::server_time::min();

// A deadline that cannot overflow, whatever duration a client sends.
constexpr spi::server_time after(spi::server_time now, duration wait) noexcept {
  return wait >= never - now ? never : now + wait;
}

// Since an epoch; 0 before it.
inline std::uint64_t microseconds(duration time) noexcept {
  const auto count = std::chrono::floor<std::chrono::microseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

// Whose claim it is: one client, reached by one connection. Pushes go there.
using process_id = std::int64_t;
// Owns detached claims where a hold lasts as long as its client lives: no client has this number.
inline constexpr process_id nobody = 0;

struct rules {
  // A pushed grant lives this long (at most its ttl) until the first renewal makes it a lease.
  duration offer = std::chrono::seconds(2);
  // A waiter that is not heard from for this long is considered dead and loses its place.
  duration waiter_lease = std::chrono::seconds(30);
  // Among unfair claims: a lone waiter can be overtaken for this long before it is handed the lock.
  duration hand_over_after = std::chrono::milliseconds(1);
  // How much longer than its ttl the id of a claim that was left is remembered.
  duration tombstone_extra = std::chrono::seconds(60);
  // Waiters that look again at a holder's end come one after the other: the k-th k steps later.
  duration stagger = std::chrono::milliseconds(20);
  duration stagger_limit = std::chrono::seconds(1);
  // As a member of a quorum: after losing its state its votes do not count for this long, the
  // longest ttl that any claim may have. Zero: it cannot survive the loss of its state.
  duration longest_ttl{0};
  // How far a proposed fence may be from this clock's microseconds.
  duration fence_slack = std::chrono::seconds(1);
  // Of a latch whose change names none.
  duration latch_life = std::chrono::hours(24);
  // Grants, and dead waiters skipped, in one step; the next verb on the resource continues.
  std::size_t promote_limit = 64;
  // Holders of one resource, and waiters of one; beyond it: overloaded.
  std::size_t claim_limit = 1'000'000;
  // Resources of which only the fence is kept; beyond it they share one floor.
  std::size_t idle_limit = 100'000;
  // A hold ends after its ttl unless it is renewed. False: a renewed hold, once taken up, lasts as
  // long as its client lives, and the store finds out which clients are dead.
  bool holds_are_leases = true;
  // A push to the calling client cannot get lost: its grants are not offers.
  bool own_pushes_arrive = false;
  // The head of the queue watches the holders. When they change without a grant,
  // it is woken to ask again.
  bool head_watches = false;
};

enum class kind : std::uint8_t { idle = 0, lock = 1, semaphore = 2, latch = 3 };

// A claim that waits or holds.
struct entry {
  spi::claim_id id;
  std::int64_t place = 0;  // its number in the queue of its resource
  process_id process = 0;
  std::uint64_t fence = 0;
  spi::server_time since{};       // queued, then granted
  spi::server_time heard{};       // a waiter's last sign of life, where the ledger keeps it
  spi::server_time ends = never;  // of a hold, an offer, or a waiter's own short lease
  duration ttl{};
  duration lock_delay{};
  std::uint32_t permits = 1;
  std::uint32_t fence_block = 1;
  spi::mode mode = spi::mode::exclusive;
  bool fair = false;
  bool renewed = true;
  bool revoked = false;  // not renewed any more
  bool offer = false;    // handed over, and not yet taken up
  bool told = false;     // notified: a holder that somebody waits, a waiter that it is free
  std::optional<std::uint64_t> proposed_fence;
  std::string payload;
};

spi::holder described_holder(const entry& row, spi::server_time now);
spi::waiting described_waiter(const entry& row, spi::server_time now);

// What the rules need to know of a resource without looking at its claims: sums, which the book
// keeps in step with them.
struct resource {
  std::uint64_t last = 0;  // the last fence that was given
  ledgers::kind kind = kind::idle;
  bool observed = false;  // somebody wants its events
  std::uint32_t max = 0;  // of a semaphore
  std::uint32_t holders = 0;
  std::uint32_t exclusive = 0;  // of the holders: at most one
  std::uint32_t waiting = 0;
  std::uint32_t waiting_fair = 0;
  std::uint32_t waiting_exclusive = 0;
  std::uint64_t permits = 0;          // of all holders
  spi::server_time next_end = never;  // no hold ends earlier; of a latch: its end
  // When the last offer was made that nobody took up, while somebody waits. A waiter not heard
  // from since is passed over until it is, so that the whole queue costs one offer, however many
  // in it are dead or frozen.
  spi::server_time silent_since = long_ago;
  spi::server_time blocked_until = long_ago;  // after an abnormal end
  duration blocked_for{0};                    // how long that was from its beginning
  bool dirty = false;                         // something of this was changed

  [[nodiscard]] bool unused() const noexcept { return holders == 0 && waiting == 0; }
  [[nodiscard]] bool is_blocked(spi::server_time now) const noexcept { return blocked_until > now; }
  // For the lock delay of a holder that ended abnormally; none is 0.
  void block(duration delay, spi::server_time since) noexcept {
    if (delay <= duration{0} || after(since, delay) <= blocked_until) return;
    blocked_until = after(since, delay);
    blocked_for = delay;
    dirty = true;
  }
};

struct push : stores::push {
  process_id process = 0;
  duration kept{};  // gone: how long nobody else can get it; zero: it is free now
};

struct ledger_event {
  spi::resource_id resource;
  spi::store_event event;
};

// The effects of one step beside its answer, to be delivered in order, once no lock is held.
struct effects {
  std::vector<push> pushes;
  std::vector<spi::resource_id> latches;  // that changed
  // Over without having left: expired, died while waiting, removed by force. Unless such a claim is
  // attempted again, no push comes for it after those of this step.
  std::vector<std::pair<process_id, spi::claim_id>> ended;
  std::vector<ledger_event>
      events;  // only where this or the resource is observed: each costs a hash
  bool observed = false;
};

// Whether a claim's id is kept after it was left, so that a late attempt cannot revive it.
enum class on_leave : std::uint8_t { forget, remember };

// One verb: when it happens, its effects, and who calls it.
struct moment {
  spi::server_time now;
  effects& out;
  process_id self = nobody;
  // The calling claim: it gets an answer, no push, and can be granted wherever pushes go.
  const spi::claim_id* claim = nullptr;
  on_leave then = on_leave::forget;
  // Clients that are known to be dead.
  const std::set<process_id>* dead = nullptr;
  // Where a store finds claims by place: the place of the verb's claim; updated.
  std::int64_t* place = nullptr;
};
inline constexpr std::int64_t nowhere = 0;       // such a claim is new
inline constexpr std::int64_t to_be_found = -1;  // among those who hold

}  // namespace holdfast::ledgers
