// See the header.
#include "stores/sql/bells.hpp"

#include <utility>
#include <vector>

namespace holdfast::sql {

void bells::hang(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> wakeup) {
  const std::lock_guard lock(mutex_);
  bells_[claim].swap(wakeup);  // the old one ends with the argument, under no lock
}

void bells::remove(const spi::claim_id& claim) noexcept {
  std::map<spi::claim_id, std::shared_ptr<spi::wakeup>>::node_type ended;  // under no lock
  const std::lock_guard lock(mutex_);
  ended = bells_.extract(claim);
}

void bells::clear() noexcept {
  std::map<spi::claim_id, std::shared_ptr<spi::wakeup>> ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended.swap(bells_);
}

void bells::ring(const push& what) {
  std::shared_ptr<spi::wakeup> wakeup;
  {
    const std::lock_guard lock(mutex_);
    const auto found = bells_.find(what.claim);
    if (found == bells_.end()) return;
    wakeup = found->second;
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

void bells::ring_all() {
  std::vector<std::shared_ptr<spi::wakeup>> all;
  {
    const std::lock_guard lock(mutex_);
    all.reserve(bells_.size());
    for (const auto& [claim, wakeup] : bells_) all.push_back(wakeup);
  }
  for (const auto& wakeup : all) wakeup->notify(std::nullopt);
}

}  // namespace holdfast::sql
