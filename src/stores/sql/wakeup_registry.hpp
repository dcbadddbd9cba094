// The wake-ups of a SQL store's claims, and what was heard of others who are concerned by each.
#pragma once

#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace holdfast::sql {

// What is so may be something else.
enum class contention : std::uint8_t {
  none,  // what it holds is likely to be nobody else's concern
  some,  // it waits, or somebody waits for it
  many,  // it was pushed to, and others waited on
};
struct contention_hint {
  contention around = contention::none;
};

// Thread-safe. Wake-ups are called under no lock.
class wakeup_registry : public stores::wakeup_registry<contention_hint> {
 public:
  // It has some. Every push says so too.
  void mark_contended(const spi::claim_id& claim, contention at_least = contention::some) {
    const std::lock_guard lock(mutex_);
    if (entry* its = known(claim)) its->around = std::max(its->around, at_least);
  }
  // Not here: some.
  [[nodiscard]] contention around(const spi::claim_id& claim) const {
    const std::lock_guard lock(mutex_);
    const entry* its = known(claim);
    return its != nullptr ? its->around : contention::some;
  }

  void notify(const stores::push& what) {
    const bool crowded = what.grant && what.grant->wanted;
    mark_contended(what.claim, crowded ? contention::many : contention::some);
    stores::wakeup_registry<contention_hint>::notify(what);
  }
};

}  // namespace holdfast::sql
