// How a store reaches the claims of this client: notifications from the engine, and which
// wake-up belongs to which claim.
#pragma once

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::stores {

// A notification from the engine to a claim.
struct push {
  enum class kind : std::uint8_t {
    granted,  // `grant`: an offer
    freed,    // ask again: it may be free
    wanted,   // somebody waits for what this claim holds
    gone,     // taken away, or not renewed any more: `why`
  };
  kind what = kind::freed;
  spi::claim_id claim{};
  std::optional<spi::granted> grant{};
  error why{};

  void deliver(spi::wakeup& to) const noexcept {
    switch (what) {
      case kind::granted:
      case kind::freed:
        return to.notify(grant);
      case kind::wanted:
        return to.wanted();
      case kind::gone:
        return to.gone(why);
    }
  }
};

// Ids are random: any part of one is a good hash.
struct part_of_id {
  std::size_t operator()(const spi::claim_id& id) const noexcept {
    std::size_t part = 0;
    std::memcpy(&part, id.bytes.data(), sizeof part);
    return part;
  }
};

struct no_details {};

// Thread-safe. Wake-ups are called and destroyed under no lock of this. `Details`: what else an
// engine keeps about a claim, for a derived class.
template <class Details = no_details>
class wakeup_registry {
 public:
  using wakeup_ptr = std::shared_ptr<spi::wakeup>;
  struct entry : Details {
    wakeup_ptr wakeup;
    std::uint32_t attempts = 0;
    bool lost = false;  // one of them
  };

  // Called before an attempt is sent: a push may overtake the answer. Returns the wake-up of the
  // previous attempt, for callers with a lock of their own under which it must not be destroyed.
  wakeup_ptr add(const spi::claim_id& claim, wakeup_ptr wakeup) {
    const std::lock_guard lock(mutex_);
    entry& its = enter(claim);
    ++its.attempts;
    return std::exchange(its.wakeup, std::move(wakeup));
  }
  // Null: not registered.
  wakeup_ptr remove(const spi::claim_id& claim) noexcept { return take(claim).wakeup; }
  // Null: not registered; a push for it is dropped.
  [[nodiscard]] wakeup_ptr find(const spi::claim_id& claim) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(claim);
    return its == nullptr ? nullptr : its->wakeup;
  }
  void clear() noexcept {
    entries ended;  // destroyed under no lock
    const std::lock_guard lock(mutex_);
    ended.swap(entries_);
  }

  // It is registered, only one attempt of it was made, and that one is not known to be lost.
  [[nodiscard]] bool only_attempt(const spi::claim_id& claim) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(claim);
    return its != nullptr && its->attempts == 1 && !its->lost;
  }
  // An attempt was not answered, and may be executed at any time.
  void attempt_lost(const spi::claim_id& claim) noexcept {
    const std::lock_guard lock(mutex_);
    if (entry* its = known(claim)) its->lost = true;
  }
  [[nodiscard]] bool may_come_late(const spi::claim_id& claim) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(claim);
    return its != nullptr && its->lost;
  }

  void notify(const push& what) const {
    if (const wakeup_ptr wakeup = find(what.claim)) what.deliver(*wakeup);
  }
  // Pushes may have been missed: waiters ask again.
  void notify_all() const {
    std::vector<wakeup_ptr> all;
    {
      const std::lock_guard lock(mutex_);
      all.reserve(entries_.size());
      for (const auto& [claim, its] : entries_) all.push_back(its.wakeup);
    }
    for (const wakeup_ptr& wakeup : all) wakeup->notify(std::nullopt);
  }

 protected:
  using entries = std::unordered_map<spi::claim_id, entry, part_of_id>;

  // Each with the mutex held.
  entry* known(const spi::claim_id& claim) noexcept {
    const auto found = entries_.find(claim);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const entry* known(const spi::claim_id& claim) const noexcept {
    const auto found = entries_.find(claim);
    return found == entries_.end() ? nullptr : &found->second;
  }
  // A registered claim keeps its details.
  entry& enter(const spi::claim_id& claim) {
    if (entry* its = known(claim)) return *its;
    if (spare_.empty()) return entries_[claim];
    spare_.key() = claim;
    return entries_.insert(std::move(spare_)).position->second;
  }

  entry take(const spi::claim_id& claim) noexcept {
    const std::lock_guard lock(mutex_);
    return take_locked(claim);
  }
  entry take_locked(const spi::claim_id& claim) noexcept {
    const auto found = entries_.find(claim);
    if (found == entries_.end()) return {};
    entry ended = std::exchange(found->second, {});
    spare_ = entries_.extract(found);
    return ended;
  }

  mutable std::mutex mutex_;
  entries entries_;  // guarded by mutex_
  typename entries::node_type
      spare_;  // guarded by mutex_; from the last removal, for the next entry
};

}  // namespace holdfast::stores
