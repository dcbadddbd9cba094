// The rounds of claims that are not over, by the core's id of the claim.
#pragma once

#include "stores/quorum/round.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::quorum {

// Thread-safe; rounds are called and destroyed under no lock.
class active_rounds {
 public:
  [[nodiscard]] std::shared_ptr<round> find(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(id);
    return found == rounds_.end() ? nullptr : found->second;
  }

  void put(const spi::claim_id& id, std::shared_ptr<round> made, time_point now) {
    drop_over(now);
    const std::lock_guard lock(mutex_);
    rounds_[id].swap(made);
  }

  // Unless another round has taken its place.
  void forget(const spi::claim_id& id, const std::shared_ptr<round>& over) {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(id);
    if (found != rounds_.end() && found->second == over) rounds_.erase(found);
  }

  void clear() {
    std::map<spi::claim_id, std::shared_ptr<round>> all;
    const std::lock_guard lock(mutex_);
    all.swap(rounds_);
  }

 private:
  static constexpr std::size_t fewest = 1'000;

  // A lease that the core lets run out is never left: looked for when there are many.
  void drop_over(time_point now) {
    std::vector<std::pair<spi::claim_id, std::shared_ptr<round>>> all;
    {
      const std::lock_guard lock(mutex_);
      if (rounds_.size() < next_look_) return;
      all.assign(rounds_.begin(), rounds_.end());
    }
    for (const auto& [id, each] : all) {
      if (each->over_at() < now) forget(id, each);
    }
    const std::lock_guard lock(mutex_);
    next_look_ = std::max(fewest, 2 * rounds_.size());
  }

  mutable std::mutex mutex_;
  std::map<spi::claim_id, std::shared_ptr<round>> rounds_;  // guarded by mutex_
  std::size_t next_look_ = fewest;                          // guarded by mutex_
};

}  // namespace holdfast::quorum
