// The wake-ups of a SQL store's claims, and what is known about contention for each.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/store.hpp>

#include <mutex>

namespace holdfast::sql {

// It waits, or somebody waits for it. Otherwise its hold probably concerns nobody else.
struct contention_hint {
  bool contended = false;
};

// Thread-safe. Wake-ups are called under no lock.
class wakeup_registry : public stores::wakeup_registry<contention_hint> {
 public:
  // Every push says so too.
  void mark_contended(const spi::claim_id& claim) {
    const std::lock_guard lock(mutex_);
    if (entry* its = known(claim)) its->contended = true;
  }
  [[nodiscard]] bool is_contended(const spi::claim_id& claim) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(claim);
    return its == nullptr || its->contended;
  }

  void notify(const stores::push& what) {
    mark_contended(what.claim);
    stores::wakeup_registry<contention_hint>::notify(what);
  }
};

}  // namespace holdfast::sql
