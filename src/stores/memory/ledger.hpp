// The ledger: every grant rule in one place. What a server does with claims, without the server:
// the memory store runs it under a mutex, the simulator runs it behind a simulated network.
//
// Pure and deterministic: the time is an argument, and equal calls give equal answers. Not
// thread-safe. Copyable: a copy is a snapshot.
//
// Invariants:
//  1. At any time a resource has one exclusive holder and nobody else, or any number of shared
//     ones, or permit holders whose permits sum up to at most max.
//  2. Fences of a resource grow strictly from grant to grant, whatever ends or is forgotten.
//  3. Every verb begins by promoting: what has ended by its time is out, and whoever can be granted
//     is granted, before the verb itself looks.
//  4. No claim is granted before an earlier one that waits, is alive, reachable and was heard since
//     the last offer of the resource that nobody took up was made; except that an unfair newcomer
//     may take what is free while only unfair ones wait.
//  5. Verbs are idempotent by the claim's id; a renewal never creates; an id that was left with
//     on_leave::remember is never placed again.
//
// A claim's states:
//   (none) -> waiting -> offered -> held -> (none)
//   (none) -> held, when an attempt finds it free
//   waiting ends by leave or by its waiter's lease; offered by its offer; held by leave, by ttl or
//   by force.
#pragma once

#include "stores/memory/expiring_map.hpp"
#include "stores/memory/latches.hpp"
#include "stores/memory/resource.hpp"
#include "stores/memory/rules.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::memory {

// Whether a claim's id is kept after it was left, so that a late attempt cannot revive it.
enum class on_leave : std::uint8_t { forget, remember };

class ledger {
 public:
  // Would a push arrive, as far as the server can tell (a live subscription)?
  using reachability = std::function<bool(process_id)>;

  // The first fence of a new resource is fence_floor + 1.
  explicit ledger(memory::rules rules = {}, reachability reachable = {},
                  std::uint64_t fence_floor = 0);

  // Granted, or blocked and queued (not queued where claim.queued is false). Known already: where
  // it stands, its lease made again. lost: left before, or new and later than `not_after`;
  // name_conflict, conflict, invalid, overloaded: placed nowhere.
  result<spi::outcome> attempt(spi::server_time now, const spi::claim_ptr& claim,
                               process_id process, std::optional<spi::server_time> not_after,
                               effects& out);

  // Release and withdrawal.
  spi::departure leave(spi::server_time now, const spi::claim& claim, process_id process,
                       on_leave then, effects& out);

  // Never unknown. A waiter that is granted in this step learns it from the answer.
  spi::renewal renew(spi::server_time now, const spi::claim& claim, process_id process,
                     effects& out);

  // Downgrade or upgrade. lost: not a holder; would_deadlock: not the sole reader.
  result<spi::granted> change(spi::server_time now, const spi::claim& claim, spi::mode to,
                              process_id process, effects& out);

  // Gives a hold to another claim, with the same fence: see spi::store::transfer. not_held: neither holds.
  // `then`: of the one that held.
  result<spi::granted> transfer(spi::server_time now, const spi::claim_id& from,
                                const spi::claim_ptr& to, process_id process, on_leave then,
                                effects& out);

  // A member's part in a quorum's fence: see spi::store::raise. lost: not a holder.
  result<spi::granted> raise(spi::server_time now, const spi::claim& claim, fence_token fence,
                             process_id process, effects& out);
  // Since when this ledger keeps its state; else since the first vote that it was asked for.
  void born(spi::server_time when) noexcept { born_ = when; }

  // The holders that were taken away (force) or may not renew any more (safe). `claim`: a public
  // id, or empty for all.
  std::vector<spi::holder> revoke(spi::server_time now, const spi::resource_id& resource,
                                  spi::revocation how, const std::string& claim, effects& out);

  spi::resource_state inspect(spi::server_time now, const spi::resource_id& resource, effects& out);
  std::vector<spi::resource_summary> list(spi::server_time now, const std::string& space,
                                          const std::string& prefix, effects& out);

  result<spi::latch_state> change_latch(spi::server_time now, const spi::resource_id& resource,
                                        const spi::latch_change& change, effects& out);
  result<spi::latch_state> read_latch(spi::server_time now, const spi::resource_id& resource,
                                      effects& out);

  // Promotes every resource: what a sweep or a leak check does.
  void settle(spi::server_time now, effects& out);

  // No claim is left, waiting or held. Fences, latches and tombstones may be.
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t tombstones() const noexcept { return tombstones_.size(); }

 private:
  // One verb: when it happens, what it causes, and who speaks. Who speaks is answered, not pushed
  // to, and needs no subscription to be granted.
  struct moment {
    spi::server_time now;
    effects& out;
    std::optional<process_id> process;
    const spi::claim_id* claim = nullptr;
  };

  resource& place_of(spi::server_time now, const spi::resource_id& id);
  resource* known(const spi::resource_id& id);
  void sweep(spi::server_time now);
  void remember(spi::server_time now, const spi::claim& claim);
  spi::outcome place(const moment& step, resource& at, const spi::claim_ptr& claim);
  static spi::departure remove(const moment& step, resource& at, const spi::claim_id& id);
  void keep_place(const moment& step, resource& at, const spi::claim_id& id);
  void create_by_renewal(const moment& step, const spi::claim& claim);
  result<void> check_latch(spi::server_time now, const spi::resource_id& resource, effects& out);

  // promote.cpp
  void promote(const moment& step, resource& at);
  void drop_ended(const moment& step, resource& at);
  [[nodiscard]] const waiter* next_in_line(const moment& step, const resource& at) const;
  [[nodiscard]] bool eligible(const moment& step, const resource& at, const waiter& waiting) const;
  [[nodiscard]] bool hands_over(const moment& step, const resource& at, const waiter& next) const;
  [[nodiscard]] bool may_take(const moment& step, const resource& at,
                              const spi::claim& newcomer) const;
  void grant(const moment& step, resource& at, const spi::claim_ptr& claim, process_id process);
  void announce(const moment& step, resource& at, const std::vector<spi::claim_id>& offered) const;
  [[nodiscard]] duration waiter_lease() const noexcept;

  // vote.cpp
  fence_token fence_for(const moment& step, resource& at, const spi::claim& claim) const;
  [[nodiscard]] duration counts_after(spi::server_time now, const spi::claim& claim) const noexcept;

  // answer.cpp
  [[nodiscard]] spi::granted granted_at(const moment& step, const resource& at,
                                        const spi::claim_id& id) const;
  spi::granted prolong(const moment& step, resource& at, const spi::claim_id& id);
  [[nodiscard]] spi::blocked blocked_at(const moment& step, const resource& at,
                                        const spi::claim_id& id) const;
  [[nodiscard]] duration recheck_after(const moment& step, const resource& at,
                                       const spi::claim_id& id) const;
  static void note(const moment& step, const resource& at, spi::event_kind kind,
                   const spi::claim& claim, const hold* held = nullptr);

  // overview.cpp
  static constexpr const char* revoked = "revoked: not renewed any more";
  static void tell_gone(const moment& step, const hold& held, const char* why);

  memory::rules rules_;
  reachability reachable_;
  std::uint64_t fence_floor_;
  std::size_t next_sweep_;
  std::optional<spi::server_time> born_;
  std::map<spi::resource_id, resource> resources_;
  expiring_map<spi::claim_id, std::monostate> tombstones_;
  memory::latches latches_;
};

}  // namespace holdfast::memory
