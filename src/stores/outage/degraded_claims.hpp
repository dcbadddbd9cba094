// Who is at the stand-in, and whom the engine may still know.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::outage {

// Between the stand-in and a claim: marks what is pushed as degraded. Thread-safe.
class fallback_wakeup final : public spi::wakeup {
 public:
  explicit fallback_wakeup(std::shared_ptr<spi::wakeup> claim) : claim_(std::move(claim)) {}

  // From now on nothing is granted through it: the stand-in is being left by all.
  void mute() noexcept { muted_.store(true, std::memory_order_release); }
  // The claim was told that it holds, by a push or otherwise.
  void believes() noexcept { believes_.store(true, std::memory_order_release); }
  [[nodiscard]] bool believed() const noexcept { return believes_.load(std::memory_order_acquire); }

  void notify(std::optional<spi::granted> grant) noexcept override;
  void wanted() noexcept override { claim_->wanted(); }
  void gone(const error& why) noexcept override { claim_->gone(why); }

 private:
  const std::shared_ptr<spi::wakeup> claim_;
  std::atomic<bool> muted_{false};
  std::atomic<bool> believes_{false};
};

// Thread-safe; calls nobody.
class degraded_claims {
 public:
  struct entry {
    spi::claim_ptr claim;
    std::shared_ptr<fallback_wakeup> wakeup;
    bool known = false;  // to the engine, perhaps
  };

  // The engine was asked for it and may have it waiting.
  void asked(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    if (asked_.size() < most) asked_.insert(id);
  }
  // It was granted, refused or left: nothing of it waits there.
  void settled(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    asked_.erase(id);
  }

  void moved_here(const spi::claim_ptr& claim, std::shared_ptr<fallback_wakeup> wakeup) {
    const std::lock_guard lock(mutex_);
    auto& at = here_[claim->id];
    at = {claim, std::move(wakeup), at.known || asked_.contains(claim->id)};
  }
  void granted(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    const auto found = here_.find(id);
    if (found != here_.end()) found->second.wakeup->believes();
  }
  [[nodiscard]] bool here(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    return here_.contains(id);
  }
  std::optional<entry> take(const spi::claim_id& id) {
    const std::lock_guard lock(mutex_);
    const auto found = here_.find(id);
    if (found == here_.end()) return std::nullopt;
    entry taken = std::move(found->second);
    here_.erase(found);
    return taken;
  }
  std::vector<entry> take_all() {
    const std::lock_guard lock(mutex_);
    std::vector<entry> all;
    for (auto& [id, each] : here_) all.push_back(std::move(each));
    here_.clear();
    return all;
  }

  // To be left at the engine when it answers again, unless that is after `end`.
  void leave_later(const spi::claim_ptr& claim, time_point end) {
    const std::lock_guard lock(mutex_);
    asked_.erase(claim->id);
    if (remains_.size() < most) remains_.emplace_back(claim, end);
  }
  std::vector<spi::claim_ptr> take_remains(time_point now) {
    std::vector<std::pair<spi::claim_ptr, time_point>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(remains_);
    }
    std::vector<spi::claim_ptr> alive;
    for (auto& [claim, end] : all) {
      if (now < end) alive.push_back(std::move(claim));
    }
    return alive;
  }

 private:
  static constexpr std::size_t most =
      100'000;  // as many as a client has waiters; the ttl ends others

  mutable std::mutex mutex_;
  std::map<spi::claim_id, entry> here_;                         // guarded by mutex_
  std::set<spi::claim_id> asked_;                               // guarded by mutex_
  std::vector<std::pair<spi::claim_ptr, time_point>> remains_;  // guarded by mutex_
};

}  // namespace holdfast::outage
