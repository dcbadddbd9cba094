#include "stores/sqlite/roll.hpp"

#include <utility>

namespace holdfast::sqlite {

std::int64_t roll::enlist(const spi::claim_ptr& claim, wakeup_ptr wakeup) {
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(claim->id);
  if (found == entries_.end() && !spare_.empty()) {
    spare_.key() = claim->id;
    found = entries_.insert(std::move(spare_)).position;
  } else if (found == entries_.end()) {
    found = entries_.emplace(claim->id, entry{}).first;
  }
  found->second.claim = claim;
  found->second.wake = std::move(wakeup);
  return found->second.place;
}

void roll::strike(const spi::claim_id& id) {
  entry ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  if (!owed_.empty()) owed_.erase(id);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  unwatch(id, found->second);
  ended = std::exchange(found->second, {});
  spare_ = entries_.extract(found);
}

bool roll::empty() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

std::vector<spi::claim_ptr> roll::claims() const {
  const std::lock_guard lock(mutex_);
  std::vector<spi::claim_ptr> all;
  all.reserve(entries_.size());
  for (const auto& [id, of] : entries_) all.push_back(of.claim);
  return all;
}

std::int64_t roll::place(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? 0 : found->second.place;
}

void roll::move(entry& of, std::int64_t place) {
  if (std::exchange(of.place, place) != place) of.ends_by_time = false;
}

void roll::set_place(const spi::claim_id& id, std::int64_t place) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) move(found->second, place);
}

void roll::set_seat(const spi::claim_id& id, std::int64_t place) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  move(found->second, place);
  unwatch(id, found->second);
}

void roll::let_end(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second.ends_by_time = true;
}

bool roll::ends_by_time(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.ends_by_time;
}

roll::wakeup_ptr roll::wakeup(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : found->second.wake;
}

void roll::unwatch(const spi::claim_id& id, entry& of) {
  for (const std::int64_t client : of.watched) {
    const auto found = watched_.find(client);
    if (found == watched_.end()) continue;
    found->second.erase(id);
    if (found->second.empty()) watched_.erase(found);
  }
  of.watched.clear();
}

void roll::watch(const spi::claim_id& id, const std::vector<std::int64_t>& clients) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.watched == clients) return;
  unwatch(id, found->second);
  found->second.watched = clients;
  for (const std::int64_t client : clients) watched_[client].insert(id);
}

std::vector<roll::wakeup_ptr> roll::watchers(std::int64_t client) const {
  const std::lock_guard lock(mutex_);
  std::vector<wakeup_ptr> all;
  const auto found = watched_.find(client);
  if (found == watched_.end()) return all;
  for (const spi::claim_id& id : found->second) all.push_back(entries_.at(id).wake);
  return all;
}

void roll::add_pending(const spi::resource_id& on) {
  const std::lock_guard lock(mutex_);
  ++pending_[on];
  pending_names_.store(pending_.size(), std::memory_order_release);
}

void roll::end_pending(const spi::resource_id& on) {
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(on);
  if (found != pending_.end() && --found->second == 0) pending_.erase(found);
  pending_names_.store(pending_.size(), std::memory_order_release);
}

// Who asks for one verb after another sees what the one before left here.
bool roll::pending(const spi::resource_id& on) const {
  if (pending_names_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  return pending_.contains(on);
}

void roll::owe(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(id)) owed_.insert(id);
}

std::vector<spi::claim_ptr> roll::owed() const {
  const std::lock_guard lock(mutex_);
  std::vector<spi::claim_ptr> all;
  all.reserve(owed_.size());
  for (const spi::claim_id& id : owed_) all.push_back(entries_.at(id).claim);
  return all;
}

}  // namespace holdfast::sqlite
