// This client's own claims: who is woken, where in its line each stands, and whose death it waits
// for. The database has the truth; this is how to find it and whom to tell.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace holdfast::sqlite {

struct local_claim {
  spi::claim_ptr claim;
  std::int64_t place = 0;
  bool ends_by_time = false;
  std::vector<std::int64_t> watched;
};

// Thread-safe.
class local_claims : private stores::wakeup_registry<local_claim> {
 public:
  using wakeup_registry::find;
  using wakeup_registry::wakeup_ptr;

  // Known from here on; a claim that is known already keeps its place, which is the answer.
  std::int64_t enlist(const spi::claim_ptr& claim, wakeup_ptr wakeup);
  void strike(const spi::claim_id& id);
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::vector<spi::claim_ptr> claims() const;

  // 0: nowhere, as far as this client knows.
  [[nodiscard]] std::int64_t place(const spi::claim_id& id) const;
  void set_place(const spi::claim_id& id, std::int64_t place);
  // It holds there, and waits for nobody's end any more.
  void set_held_place(const spi::claim_id& id, std::int64_t place);
  // It was revoked: the database ends it by time.
  void let_end(const spi::claim_id& id);
  [[nodiscard]] bool ends_by_time(const spi::claim_id& id) const;

  // Whose end this claim wants to know of, instead of those before.
  void watch(const spi::claim_id& id, const std::vector<std::int64_t>& clients);
  [[nodiscard]] std::vector<wakeup_ptr> watchers(std::int64_t client) const;

  // Verbs on this resource that wait for the worker: later ones must go behind them.
  void add_pending(const spi::resource_id& on);
  void end_pending(const spi::resource_id& on);
  [[nodiscard]] bool pending(const spi::resource_id& on) const;

  // A leave that found no answer is owed: it is repeated until it is answered, since a hold does
  // not end by time here.
  void owe(const spi::claim_id& id);
  [[nodiscard]] std::vector<spi::claim_ptr> owed() const;

 private:
  using ids = std::unordered_set<spi::claim_id, stores::part_of_id>;

  static void move(local_claim& of, std::int64_t place);
  void unwatch(const spi::claim_id& id, local_claim& of);

  std::unordered_map<std::int64_t, ids> watched_;  // guarded by mutex_; by client
  std::map<spi::resource_id, int> pending_;        // guarded by mutex_
  std::atomic<std::size_t> pending_names_{0};      // as many as are in pending_
  ids owed_;                                       // guarded by mutex_
};

}  // namespace holdfast::sqlite
