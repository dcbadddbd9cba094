#include "stores/sql/wakeup_registry.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::sql {

void wakeup_registry::add(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> wakeup) {
  const std::lock_guard lock(mutex_);
  registration& its = wakeups_[claim];
  its.wakeup.swap(wakeup);  // the old one ends with the argument, under no lock
  ++its.attempts;
}

void wakeup_registry::remove(const spi::claim_id& claim) noexcept {
  std::map<spi::claim_id, registration>::node_type ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended = wakeups_.extract(claim);
}

bool wakeup_registry::only_attempt(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = wakeups_.find(claim);
  return found != wakeups_.end() && found->second.attempts == 1;
}

void wakeup_registry::clear() noexcept {
  std::map<spi::claim_id, registration> ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended.swap(wakeups_);
}

void wakeup_registry::mark_contended(const spi::claim_id& claim) {
  const std::lock_guard lock(mutex_);
  const auto found = wakeups_.find(claim);
  if (found == wakeups_.end()) return;
  found->second.around = std::max(found->second.around, contention::some);
}

wakeup_registry::contention wakeup_registry::around(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = wakeups_.find(claim);
  return found != wakeups_.end() ? found->second.around : contention::some;
}

void wakeup_registry::notify(const push& what) {
  std::shared_ptr<spi::wakeup> wakeup;
  {
    const std::lock_guard lock(mutex_);
    const auto found = wakeups_.find(what.claim);
    if (found == wakeups_.end()) return;
    const bool crowded = what.grant && what.grant->wanted;
    found->second.around =
        std::max(found->second.around, crowded ? contention::many : contention::some);
    wakeup = found->second.wakeup;
  }
  switch (what.what) {
    case push::kind::granted:
    case push::kind::freed:
      return wakeup->notify(what.grant);
    case push::kind::wanted:
      return wakeup->wanted();
    case push::kind::gone:
      return wakeup->gone(what.why);
    case push::kind::event:
    case push::kind::latch:
      return;
  }
}

void wakeup_registry::notify_all() {
  std::vector<std::shared_ptr<spi::wakeup>> all;
  {
    const std::lock_guard lock(mutex_);
    all.reserve(wakeups_.size());
    for (const auto& [claim, each] : wakeups_) all.push_back(each.wakeup);
  }
  for (const auto& wakeup : all) wakeup->notify(std::nullopt);
}

}  // namespace holdfast::sql
