// The ledger: every grant rule in one place. It does what a server does with claims, without the
// server. The memory store (and with it the simulator) keeps the claims in tables, the embedded
// store in a database's rows: each is a book with its own storage, which contains no rules.
//
// Deterministic: the time is an argument, and equal calls give equal answers. Not thread-safe.
//
// Invariants:
//  1. At any time a resource has one exclusive holder and nobody else, or any number of shared
//     ones, or permit holders whose permits sum up to at most max.
//  2. Fences of a resource grow strictly from grant to grant, whatever ends or is forgotten.
//  3. Every verb begins by promoting: what has ended by its time is out, and every claim that can be granted
//     is granted, before the verb itself looks.
//  4. No claim is granted before an earlier one that waits, is alive and reachable, and was heard
//     from since the resource's last offer that nobody took up; except that an unfair newcomer may
//     take what is free while only unfair ones wait (and no reader passes a waiting writer).
//  5. Verbs are idempotent by the claim's id; a renewal never creates; an id that was left with
//     on_leave::remember is never placed again.
//  6. Only the head of the queue is read, and the waiters before the first that can be granted, so
//     that a long queue costs no more than a short one.
//
// A claim's states:
//   (none) -> waiting -> offered -> held -> (none)
//   (none) -> held, when an attempt finds it free
//   waiting ends by leave, by its waiter's lease or its client's death; offered by its offer; held by leave,
//   by ttl, by its client's death or by force.
#pragma once

#include "stores/ledger/records.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::ledgers {

class book {
 public:
  // Would a push arrive, as far as the server can tell (a live subscription)?
  using reachability = std::function<bool(process_id)>;

  // The greatest count that a latch can be set to.
  static constexpr std::uint32_t max_latch_count = 1'000'000;

 protected:
  explicit book(ledgers::rules rules, reachability reachable = {})
      : rules_(rules), reachable_(std::move(reachable)) {}
  book(const book&) = default;
  book& operator=(const book&) = default;
  book(book&&) = default;
  book& operator=(book&&) = default;
  virtual ~book() = default;

  // The verbs, as spi::store describes them.

  // Granted, or blocked and queued (not queued where claim.queued is false). A known claim: its
  // current state, with its lease renewed. lost: left before, or new and later than `not_after`;
  // name_conflict, conflict, invalid, overloaded: not placed.
  result<spi::outcome> attempt(const moment& step, const spi::claim& claim,
                               std::optional<spi::server_time> not_after = std::nullopt);
  // Release and withdrawal.
  spi::departure leave(const moment& step, const spi::claim& claim);
  // Never unknown. A waiter that is granted in this step learns it from the answer.
  spi::renewal renew(const moment& step, const spi::claim& claim);
  // Downgrade or upgrade. lost: not a holder; would_deadlock: not the sole reader.
  result<spi::granted> change(const moment& step, const spi::claim& claim, spi::mode to);
  // Gives a hold to another claim, with the same fence. not_held: neither holds. moment::then
  // is for the former holder.
  result<spi::granted> transfer(const moment& step, const spi::claim_id& from,
                                const spi::claim& to);
  // A member's part in a quorum's fence. lost: not a holder.
  result<spi::granted> raise(const moment& step, const spi::claim& claim, fence_token fence);
  // The holders that were removed (force) or may not renew any more (safe). `claim`: a
  // public id, or empty for all.
  std::vector<spi::holder> revoke(const moment& step, const spi::resource_id& resource,
                                  spi::revocation how, const std::string& claim);
  result<spi::latch_state> change_latch(const moment& step, const spi::resource_id& resource,
                                        const spi::latch_change& change);
  // Changes nothing: may be called where only reading is possible.
  result<spi::latch_state> read_latch(const moment& step, const resource& at);

  // The parts of a verb.

  // promote.cpp: how a resource passes from one to the next.
  void promote(const moment& step, resource& at);
  void drop_ended(const moment& step, resource& at);
  bool drop_dead_holders(const moment& step, resource& at);
  void withdraw(const moment& step, resource& at, const entry& row);
  entry grant(const moment& step, resource& at, entry row);
  void wake_head(const moment& step, resource& at);
  static bool dead(const moment& step, const entry& row);

  // answer.cpp: answers and notifications.
  [[nodiscard]] spi::granted granted_to(const moment& step, const resource& at,
                                        const entry& row) const;
  spi::renewal renewal_of(const moment& step, const resource& at, const entry& row);
  // A sign of life from the holder: an offer becomes a hold, once; a lease starts again.
  entry prolong(const moment& step, resource& at, const entry& held);
  void note(const moment& step, const resource& at, spi::event_kind what, const entry& row,
            bool fenced);

  // Changes of the holders and waiters, with the sums.
  void add_holder(resource& at, const entry& row);
  void remove_holder(resource& at, const entry& row);
  void change_holder(resource& at, const entry& before, const entry& now);
  void add_waiter(resource& at, const entry& row);
  void remove_waiter(resource& at, const entry& row);

  // 0 permits, or more than there are.
  static bool impossible(const spi::claim& claim) noexcept;
  static void begin_use(resource& at, const spi::claim& claim) noexcept;
  static entry entry_of(const moment& step, const spi::claim& claim, std::int64_t place);

  // The storage. A resource stays where it is until the next find() or make().
  virtual resource* find(const spi::resource_id& id) = 0;
  virtual resource& make(const spi::resource_id& id, spi::server_time now) = 0;
  // At the end of a verb that may have changed it.
  virtual void save(const moment&, resource&) {}
  [[nodiscard]] virtual spi::resource_id id_of(const resource& at) const = 0;

  virtual std::optional<entry> holder(const moment& step, resource& at,
                                      const spi::claim_id& id) = 0;
  virtual std::optional<entry> waiter(const moment& step, resource& at,
                                      const spi::claim_id& id) = 0;
  virtual std::vector<entry> holders(const resource& at, std::size_t limit) = 0;
  // The claims that have ended. Afterwards next_end is that of the others.
  virtual std::vector<entry> ended_holders(resource& at, spi::server_time now) = 0;
  virtual std::vector<entry> ended_waiters(resource&, spi::server_time) { return {}; }
  // The holders to be notified that somebody waits; each is notified once.
  virtual std::vector<entry> holders_to_tell(resource& at) = 0;
  virtual void mark_told(resource&, const entry&) {}
  // The next waiter behind a place, the last one before it. Valid until the queue
  // is changed or asked again.
  virtual const entry* next_waiter(resource& at, std::int64_t place) = 0;
  virtual const entry* previous_waiter(resource& at, std::int64_t place) = 0;
  // For a newcomer, behind all waiters.
  virtual std::int64_t next_place(resource& at) = 0;
  virtual void put_holder(resource& at, const entry& row) = 0;
  virtual void erase_holder(resource& at, const entry& row) = 0;
  virtual void replace_holder(resource& at, const entry& before, const entry& now) = 0;
  virtual void put_waiter(resource& at, const entry& row) = 0;
  virtual void erase_waiter(resource& at, const entry& row) = 0;
  // A sign of life from the waiter.
  virtual void refresh_waiter(resource&, const entry&) {}

  // True once for a waiter, which is then notified that the resource is free. True
  // again after it was taken.
  virtual bool tell_free(resource& at, const entry& waiting) = 0;
  virtual void taken(resource& at) = 0;

  // A latch: its count, and the ids of changes, which are remembered until a time.
  virtual std::uint32_t latch_count(const resource& at) = 0;
  virtual void set_latch(resource& at, std::uint32_t count, duration life) = 0;
  virtual void erase_latch(resource& at) = 0;
  virtual bool latch_counted(const resource& at, const spi::claim_id& id, spi::server_time now) = 0;
  virtual void remember_latch_change(resource& at, const spi::claim_id& id,
                                     spi::server_time until) = 0;
  // The ids of the count so far are remembered until then; expired ones are forgotten.
  virtual void end_latch_count(resource& at, spi::server_time until) = 0;
  virtual void forget_latch_changes(resource& at, spi::server_time now) = 0;

  // Ids of claims that were left.
  virtual void remember(const spi::claim_id&, spi::server_time) {}
  virtual bool left_before(const spi::claim_id&) { return false; }

  // Where the stores differ, each as its engine allows.
  virtual spi::server_time last_word(const moment& step, const entry& waiting) = 0;
  // When it makes sense to ask again, if no push arrives.
  virtual duration recheck_after(const moment& step, resource& at, const entry& row,
                                 bool queued) = 0;
  // An upgrade was refused because of the other holders.
  virtual void watch_holders(const moment&, resource&) {}
  // Every new fence is at least this.
  [[nodiscard]] virtual std::uint64_t fence_floor() const { return 0; }

  ledgers::rules rules_;
  reachability reachable_;
  // Since when this ledger keeps its state; else since the first vote that it was asked for.
  std::optional<spi::server_time> born_;

 private:
  static constexpr const char* revoked_text = "revoked: not renewed any more";

  result<spi::outcome> attempt_at(const moment& step, resource& at, const spi::claim& claim,
                                  std::optional<spi::server_time> not_after);
  result<void> accepts(const resource& at, const spi::claim& claim) const;
  spi::outcome place_claim(const moment& step, resource& at, const spi::claim& claim);
  spi::departure remove(const moment& step, resource& at, const spi::claim_id& id, bool& was_head);
  void keep_place(const moment& step, resource& at, entry row);
  void create_by_renewal(const moment& step, const spi::claim& claim);
  result<spi::granted> change_at(const moment& step, resource& at, const entry& held, spi::mode to);
  std::optional<entry> to_transfer(const moment& step, resource& at, const spi::claim_id& from,
                                   const spi::claim_id& to);
  void end_latch(const moment& step, resource& at);
  result<spi::latch_state> count_latch(const moment& step, resource& at,
                                       const spi::latch_change& change);

  void end_abnormally(const moment& step, resource& at, const entry& row, spi::server_time since);
  bool closed(const moment& step, resource& at);
  const entry* next_in_line(const moment& step, resource& at);
  bool eligible(const moment& step, const resource& at, const entry& waiting);
  [[nodiscard]] bool hands_over(const moment& step, const resource& at, const entry& next) const;
  bool may_pass(const moment& step, resource& at, const entry& newcomer);
  bool free_for(const moment& step, resource& at, const entry& row);
  void set_end(entry& row, spi::server_time now) const;
  [[nodiscard]] duration waiter_lease() const noexcept;

  spi::blocked blocked_at(const moment& step, resource& at, const entry& row, bool queued);
  void tell(const moment& step, push::kind what, const entry& row) const;
  void tell_gone(const moment& step, const entry& row, const char* why, duration kept) const;

  std::uint64_t fence_for(const moment& step, resource& at, const entry& row) const;
  std::uint64_t next_fence(resource& at, std::uint32_t block) const;
  static void write_fence(resource& at, std::uint64_t fence, std::uint32_t block) noexcept;
  [[nodiscard]] duration counts_after(spi::server_time now, const entry& row) const noexcept;
};

}  // namespace holdfast::ledgers
