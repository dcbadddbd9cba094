// What goes into the ledger and what comes out beside its answers: the named limits of the grant
// rules, and the pushes and events that one step causes.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace holdfast::memory {

// Whose claim it is: one client, reached by one connection. Pushes go there.
using process_id = std::uint64_t;

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
  // Grants in one step; the next verb on the resource goes on.
  std::size_t promote_limit = 64;
  // Holders and waiters of one resource, each: then overloaded.
  std::size_t claim_limit = 1'000'000;
  // Resources of which only the fence is kept; beyond it they share one floor.
  std::size_t idle_limit = 100'000;
};

struct push {
  enum class kind : std::uint8_t {
    granted,  // `grant`: an offer
    freed,    // ask again, it may be free
    wanted,   // somebody waits for what this claim holds
    gone,     // taken away, or not renewed any more: `why`
  };
  kind what = kind::freed;
  spi::claim_id claim;
  process_id process = 0;
  std::optional<spi::granted> grant;
  error why;
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
  std::vector<spi::claim_id> ended;
  std::vector<ledger_event> events;  // only where `observed`: they cost a hash each
  bool observed = false;
};

}  // namespace holdfast::memory
