// What a ledger keeps and what it causes: claims, resources, the named limits of the grant rules, and the
// pushes and events of one step. `book.hpp` has the rules.
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
// Whose a detached claim is where a hold lasts as long as its client lives: no client has this number.
inline constexpr process_id nobody = 0;

struct rules {
  // A pushed grant lives this long (at most its ttl) until the first renewal makes it a lease.
  duration offer = std::chrono::seconds(2);
  // A waiter that is not heard of for this long has died and loses its place.
  duration waiter_lease = std::chrono::seconds(30);
  // Among unfair claims: a lone waiter gets this long to be overtaken before it is handed the lock.
  duration hand_over_after = std::chrono::milliseconds(1);
  // How much longer than its ttl the id of a claim that was left is remembered.
  duration tombstone_extra = std::chrono::seconds(60);
  // Waiters that look again at a holder's end come one after the other: the k-th k steps later.
  duration stagger = std::chrono::milliseconds(20);
  duration stagger_limit = std::chrono::seconds(1);
  // As a member of a quorum: after it lost its state its word does not count for so long, the
  // longest ttl that any claim may have. Zero: it cannot lose it and live on.
  duration longest_ttl{0};
  // How far a proposed fence may be from this clock's microseconds.
  duration fence_slack = std::chrono::seconds(1);
  // Where a latch's change names none.
  duration latch_life = std::chrono::hours(24);
  // Grants, and dead waiters passed over, in one step; the next verb on the resource goes on.
  std::size_t promote_limit = 64;
  // Holders and waiters of one resource, each: then overloaded.
  std::size_t claim_limit = 1'000'000;
  // Resources of which only the fence is kept; beyond it they share one floor.
  std::size_t idle_limit = 100'000;
  // Holders that are looked at in one step.
  std::size_t holder_limit = 1'000'000;
  // A hold ends after its ttl unless it is renewed. False: a renewed one, once it was taken up, lasts as
  // long as its client lives, and the store finds out who is dead.
  bool holds_are_leases = true;
  // A push to the client that speaks cannot get lost: what it is granted is no offer.
  bool own_pushes_arrive = false;
  // The first in line watches those who hold. Where they change without a grant, it is woken to ask again.
  bool head_watches = false;
};

enum class kind : std::uint8_t { idle = 0, lock = 1, semaphore = 2, latch = 3 };

// A claim that waits or holds.
struct entry {
  spi::claim_id id;
  std::int64_t place = 0;  // its number in the line of its resource
  process_id process = 0;
  std::uint64_t fence = 0;
  spi::server_time since{};       // queued, then granted
  spi::server_time heard{};       // a waiter's last word, where the ledger keeps it
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
  bool told = false;     // a holder: that somebody waits; a waiter: that it is free
  std::optional<std::uint64_t> proposed_fence;
  std::string payload;
};

spi::holder described_holder(const entry& row, spi::server_time now);
spi::waiting described_waiter(const entry& row, spi::server_time now);

// What the rules ask of a resource without looking at its claims: sums, kept equal to them by the book.
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
  spi::server_time next_end = never;  // no hold ends before; of a latch: its end
  // When the last offer was made that nobody took up, while somebody waits. Who has not been heard since
  // is passed over until it is, so that the whole line costs one offer, however many in it are dead or
  // frozen.
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
  duration kept{};  // gone: how long nobody else gets it; zero: it is free now
};

struct ledger_event {
  spi::resource_id resource;
  spi::store_event event;
};

// What one step causes beside its answer: to be delivered in order, once no lock is held.
struct effects {
  std::vector<push> pushes;
  std::vector<spi::resource_id> latches;  // that changed
  // Over without having left: expired, died in line, taken by force. Unless such a claim is
  // attempted again, no push comes for it after those of this step.
  std::vector<std::pair<process_id, spi::claim_id>> ended;
  std::vector<ledger_event>
      events;  // only where `observed`, or the resource is: they cost a hash each
  bool observed = false;
};

// Whether a claim's id is kept after it was left, so that a late attempt cannot revive it.
enum class on_leave : std::uint8_t { forget, remember };

// One verb: when it happens, what it causes, and who speaks.
struct moment {
  spi::server_time now;
  effects& out;
  process_id self = nobody;
  // The claim that speaks: it is answered, not pushed to, and can be granted wherever pushes go.
  const spi::claim_id* claim = nullptr;
  on_leave then = on_leave::forget;
  // Of whom it is known that they are dead.
  const std::set<process_id>* dead = nullptr;
  // Where a store finds claims by place: that of the claim that the verb is about; updated.
  std::int64_t* place = nullptr;
};
inline constexpr std::int64_t nowhere = 0;       // such a claim is new
inline constexpr std::int64_t to_be_found = -1;  // among those who hold

}  // namespace holdfast::ledgers
