#include "core/agenda.hpp"

namespace holdfast::core {

void agenda::schedule(const std::shared_ptr<agenda_item>& item, time_point when) {
  std::shared_ptr<agenda_item> replaced;  // destroyed after the lock is gone
  std::unique_lock lock(mutex_);
  if (stopped_) return;
  if (item->listed_.load(std::memory_order_relaxed)) {
    // Listed for earlier: then it will look at the time itself. Saves re-listing it at each
    // renewal.
    if (item->key_.first <= when) return;
    auto node = items_.extract(item->key_);
    item->key_ = {when, next_sequence_++};
    node.key() = item->key_;
    items_.insert(std::move(node));
  } else {
    if (when == time_point::max()) return;
    item->key_ = {when, next_sequence_++};
    item->listed_.store(true, std::memory_order_relaxed);
    if (spare_.empty()) {
      items_.emplace(item->key_, item);
    } else {
      spare_.key() = item->key_;
      spare_.mapped() = item;
      items_.insert(std::move(spare_));
    }
  }
  if (when < armed_) arm(lock);
}

void agenda::drop(agenda_item& item) noexcept {
  if (!item.listed_.load(std::memory_order_relaxed)) return;
  std::shared_ptr<agenda_item> dropped;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  if (!item.listed_.exchange(false, std::memory_order_relaxed)) return;
  const auto found = items_.find(item.key_);
  if (found == items_.end()) return;
  dropped = std::move(found->second);
  spare_ = items_.extract(found);
  // The timer stays: firing once for nothing is cheaper than a system call per release.
}

void agenda::arm(std::unique_lock<std::mutex>& lock) {
  const spi::runtime::timer_id old = std::exchange(timer_, 0);
  armed_ = items_.empty() ? time_point::max() : items_.begin()->first.first;
  const time_point when = armed_;
  if (when != time_point::max()) {
    // Under the lock, so that two calls cannot arm in the wrong order; a runtime's at() never calls
    // back.
    timer_ = runtime_.at(when, [self = weak_from_this(), round = ++round_] {
      if (const auto alive = self.lock()) alive->sweep(round);
    });
  }
  lock.unlock();
  if (old != 0) runtime_.cancel(old);
}

std::vector<std::shared_ptr<agenda_item>> agenda::take_until(time_point moment) {
  std::vector<std::shared_ptr<agenda_item>> taken;
  while (!items_.empty() && items_.begin()->first.first <= moment) {
    auto& item = items_.begin()->second;
    item->listed_.store(false, std::memory_order_relaxed);
    taken.push_back(std::move(item));
    items_.erase(items_.begin());
  }
  return taken;
}

void agenda::sweep(std::uint64_t round) {
  const time_point now = runtime_.now();
  std::vector<std::shared_ptr<agenda_item>> taken;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (round == round_) {  // else this timer was cancelled too late, and another is armed
      armed_ = time_point::max();
      timer_ = 0;
    }
    taken = take_until(now);
  }
  for (const auto& item : taken) item->due(now);
  if (swept_) swept_();
  std::unique_lock lock(mutex_);
  if (!stopped_ && !items_.empty() && items_.begin()->first.first < armed_) arm(lock);
}

void agenda::gather(time_point now, time_point horizon) {
  std::vector<std::shared_ptr<agenda_item>> near;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, item] : items_) {
      if (key.first > horizon) break;
      near.push_back(item);
    }
  }
  for (const auto& item : near) item->join(now, horizon);
}

void agenda::stop() noexcept {
  list dropped;
  spi::runtime::timer_id timer = 0;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto& [key, item] : items_) item->listed_.store(false, std::memory_order_relaxed);
    dropped.swap(items_);
    timer = std::exchange(timer_, 0);
  }
  if (timer != 0) runtime_.cancel(timer);
}

std::size_t agenda::size() const {
  const std::lock_guard lock(mutex_);
  return items_.size();
}

}  // namespace holdfast::core
