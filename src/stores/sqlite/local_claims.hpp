// This client's own claims: the wake-up of each, its place in the queue, and the clients
// whose death it waits for. The database is authoritative; this says where to find a
// claim and whom to notify.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
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

  // Known from now on; a claim that is known already keeps its place, which is returned.
  std::int64_t enlist(const spi::claim_ptr& claim, wakeup_ptr wakeup) {
    const std::lock_guard lock(mutex_);
    entry& its = enter(claim->id);
    its.claim = claim;
    its.wakeup.swap(wakeup);  // the previous one is destroyed with the argument, under no lock
    return its.place;
  }
  void strike(const spi::claim_id& id) {
    entry ended;  // destroyed under no lock
    const std::lock_guard lock(mutex_);
    if (!owed_.empty()) owed_.erase(id);
    ended = take_locked(id);
    unwatch(id, ended);
  }
  [[nodiscard]] bool empty() const {
    const std::lock_guard lock(mutex_);
    return entries_.empty();
  }
  [[nodiscard]] std::vector<spi::claim_ptr> claims() const {
    const std::lock_guard lock(mutex_);
    std::vector<spi::claim_ptr> all;
    all.reserve(entries_.size());
    for (const auto& [id, of] : entries_) all.push_back(of.claim);
    return all;
  }

  // 0: nowhere, as far as this client knows.
  [[nodiscard]] std::int64_t place(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(id);
    return its == nullptr ? 0 : its->place;
  }
  void set_place(const spi::claim_id& id, std::int64_t place) {
    const std::lock_guard lock(mutex_);
    if (entry* its = known(id)) move(*its, place);
  }
  // It holds there, and no longer waits for the end of any client.
  void set_held_place(const spi::claim_id& id, std::int64_t place) {
    const std::lock_guard lock(mutex_);
    entry* its = known(id);
    if (its == nullptr) return;
    move(*its, place);
    unwatch(id, *its);
  }
  // It was revoked: the database ends it by time.
  void let_end(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    if (entry* its = known(id)) its->ends_by_time = true;
  }
  [[nodiscard]] bool ends_by_time(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(id);
    return its != nullptr && its->ends_by_time;
  }

  // The clients whose end this claim must know of; replaces the previous ones.
  void watch(const spi::claim_id& id, const std::vector<std::int64_t>& clients) {
    const std::lock_guard lock(mutex_);
    entry* its = known(id);
    if (its == nullptr || its->watched == clients) return;
    unwatch(id, *its);
    its->watched = clients;
    for (const std::int64_t client : clients) watched_[client].insert(id);
  }
  [[nodiscard]] std::vector<wakeup_ptr> watchers(std::int64_t client) const {
    const std::lock_guard lock(mutex_);
    std::vector<wakeup_ptr> all;
    const auto found = watched_.find(client);
    if (found == watched_.end()) return all;
    for (const spi::claim_id& id : found->second) all.push_back(entries_.at(id).wakeup);
    return all;
  }

  // Verbs on this resource that wait for the worker: later verbs must go after them.
  void add_pending(const spi::resource_id& on) {
    const std::lock_guard lock(mutex_);
    ++pending_[on];
  }
  void end_pending(const spi::resource_id& on) {
    const std::lock_guard lock(mutex_);
    const auto found = pending_.find(on);
    if (found != pending_.end() && --found->second == 0) pending_.erase(found);
  }
  [[nodiscard]] bool pending(const spi::resource_id& on) const {
    const std::lock_guard lock(mutex_);
    return pending_.contains(on);
  }

  // A leave that was not answered is owed: it is repeated until it is answered, since a hold
  // does not end by time here.
  void owe(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(id)) owed_.insert(id);
  }
  [[nodiscard]] bool is_owed(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    return owed_.contains(id);
  }
  [[nodiscard]] std::vector<spi::claim_ptr> owed() const {
    const std::lock_guard lock(mutex_);
    std::vector<spi::claim_ptr> all;
    all.reserve(owed_.size());
    for (const spi::claim_id& id : owed_) all.push_back(entries_.at(id).claim);
    return all;
  }

 private:
  using ids = std::unordered_set<spi::claim_id, stores::part_of_id>;

  static void move(local_claim& of, std::int64_t place) {
    if (std::exchange(of.place, place) != place) of.ends_by_time = false;
  }
  void unwatch(const spi::claim_id& id, local_claim& of) {
    for (const std::int64_t client : of.watched) {
      const auto found = watched_.find(client);
      if (found == watched_.end()) continue;
      found->second.erase(id);
      if (found->second.empty()) watched_.erase(found);
    }
    of.watched.clear();
  }

  std::unordered_map<std::int64_t, ids> watched_;  // guarded by mutex_; by client
  std::map<spi::resource_id, int> pending_;        // guarded by mutex_
  ids owed_;                                       // guarded by mutex_
};

}  // namespace holdfast::sqlite
