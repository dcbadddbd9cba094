// A map whose entries have an end. Finding one, and finding those that have ended, cost a
// logarithm, so that ten thousand waiters cost a verb hardly more than ten.
#pragma once

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::memory {

// Iterates in the order of the keys. At its end an entry is over, but it stays until
// drop_ended() removes it.
template <class Key, class Value>
class expiring_map {
 public:
  struct entry {
    spi::server_time end;
    Value value;
  };

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] auto begin() const noexcept { return entries_.begin(); }
  [[nodiscard]] auto end() const noexcept { return entries_.end(); }
  [[nodiscard]] auto lower_bound(const Key& key) const { return entries_.lower_bound(key); }
  [[nodiscard]] auto upper_bound(const Key& key) const { return entries_.upper_bound(key); }

  [[nodiscard]] bool contains(const Key& key) const { return entries_.contains(key); }
  [[nodiscard]] entry* find(const Key& key) {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const entry* find(const Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }

  // Replaces an entry of the same key.
  Value& put(const Key& key, spi::server_time end, Value value) {
    erase(key);
    ends_.emplace(end, key);
    return entries_.emplace(key, entry{end, std::move(value)}).first->second.value;
  }

  void set_end(const Key& key, spi::server_time end) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.end == end) return;
    ends_.erase({found->second.end, key});
    ends_.emplace(end, key);
    found->second.end = end;
  }

  std::optional<Value> take(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    std::optional<Value> taken(std::move(found->second.value));
    ends_.erase({found->second.end, key});
    entries_.erase(found);
    return taken;
  }
  bool erase(const Key& key) { return take(key).has_value(); }

  [[nodiscard]] std::optional<spi::server_time> earliest_end() const {
    if (ends_.empty()) return std::nullopt;
    return ends_.begin()->first;
  }

  // The entries that are over, in the order of their ends; they stay.
  [[nodiscard]] std::vector<Value> ended(spi::server_time now) const {
    std::vector<Value> all;
    for (auto each = ends_.begin(); each != ends_.end() && each->first <= now; ++each) {
      all.push_back(find(each->second)->value);
    }
    return all;
  }
  void drop_ended(spi::server_time now) {
    while (!ends_.empty() && ends_.begin()->first <= now) erase(Key(ends_.begin()->second));
  }

 private:
  std::map<Key, entry> entries_;
  std::set<std::pair<spi::server_time, Key>> ends_;  // one per entry
};

}  // namespace holdfast::memory
