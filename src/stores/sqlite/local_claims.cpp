#include "stores/sqlite/local_claims.hpp"

#include <mutex>
#include <utility>

namespace holdfast::sqlite {

std::int64_t local_claims::enlist(const spi::claim_ptr& claim, wakeup_ptr wakeup) {
  const std::lock_guard lock(mutex_);
  entry& its = enter(claim->id);
  its.claim = claim;
  its.wakeup.swap(wakeup);  // the one before ends with the argument, under no lock
  return its.place;
}

void local_claims::strike(const spi::claim_id& id) {
  entry ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  if (!owed_.empty()) owed_.erase(id);
  ended = take_locked(id);
  unwatch(id, ended);
}

bool local_claims::empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

std::vector<spi::claim_ptr> local_claims::claims() const {
  const std::lock_guard lock(mutex_);
  std::vector<spi::claim_ptr> all;
  all.reserve(entries_.size());
  for (const auto& [id, of] : entries_) all.push_back(of.claim);
  return all;
}

std::int64_t local_claims::place(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  const entry* its = known(id);
  return its == nullptr ? 0 : its->place;
}

void local_claims::move(local_claim& of, std::int64_t place) {
  if (std::exchange(of.place, place) != place) of.ends_by_time = false;
}

void local_claims::set_place(const spi::claim_id& id, std::int64_t place) {
  const std::lock_guard lock(mutex_);
  if (entry* its = known(id)) move(*its, place);
}

void local_claims::set_held_place(const spi::claim_id& id, std::int64_t place) {
  const std::lock_guard lock(mutex_);
  entry* its = known(id);
  if (its == nullptr) return;
  move(*its, place);
  unwatch(id, *its);
}

void local_claims::let_end(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  if (entry* its = known(id)) its->ends_by_time = true;
}

bool local_claims::ends_by_time(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  const entry* its = known(id);
  return its != nullptr && its->ends_by_time;
}

void local_claims::unwatch(const spi::claim_id& id, local_claim& of) {
  for (const std::int64_t client : of.watched) {
    const auto found = watched_.find(client);
    if (found == watched_.end()) continue;
    found->second.erase(id);
    if (found->second.empty()) watched_.erase(found);
  }
  of.watched.clear();
}

void local_claims::watch(const spi::claim_id& id, const std::vector<std::int64_t>& clients) {
  const std::lock_guard lock(mutex_);
  entry* its = known(id);
  if (its == nullptr || its->watched == clients) return;
  unwatch(id, *its);
  its->watched = clients;
  for (const std::int64_t client : clients) watched_[client].insert(id);
}

std::vector<local_claims::wakeup_ptr> local_claims::watchers(std::int64_t client) const {
  const std::lock_guard lock(mutex_);
  std::vector<wakeup_ptr> all;
  const auto found = watched_.find(client);
  if (found == watched_.end()) return all;
  for (const spi::claim_id& id : found->second) all.push_back(entries_.at(id).wakeup);
  return all;
}

void local_claims::add_pending(const spi::resource_id& on) {
  const std::lock_guard lock(mutex_);
  ++pending_[on];
  pending_names_.store(pending_.size(), std::memory_order_release);
}

void local_claims::end_pending(const spi::resource_id& on) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(on);
  if (found != pending_.end() && --found->second == 0) pending_.erase(found);
  pending_names_.store(pending_.size(), std::memory_order_release);
}

// Who asks for one verb after another sees what the one before left here.
bool local_claims::pending(const spi::resource_id& on) const {
  if (pending_names_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  return pending_.contains(on);
}

void local_claims::owe(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(id)) owed_.insert(id);
}

std::vector<spi::claim_ptr> local_claims::owed() const {
  const std::lock_guard lock(mutex_);
  std::vector<spi::claim_ptr> all;
  all.reserve(owed_.size());
  for (const spi::claim_id& id : owed_) all.push_back(entries_.at(id).claim);
  return all;
}

}  // namespace holdfast::sqlite
