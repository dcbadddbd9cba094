// See the header.
#include "stores/sql/ties.hpp"

#include <utility>

namespace holdfast::sql {

void ties::begin(life now) {
  const std::lock_guard lock(mutex_);
  life_ = now;
}

void ties::end(const error& why) {
  std::vector<std::shared_ptr<spi::wakeup>> those;
  {
    const std::lock_guard lock(mutex_);
    life_ = 0;
    why_ = {errc::lost, "the connection that held it has ended: " + why.detail};
    for (auto& [id, each] : held_) ended_.push_back(std::move(each.holder));
    held_.clear();
    if (delivering_ > 0) return;
    those.swap(ended_);
  }
  tell(those, {errc::lost, "the connection that held it has ended: " + why.detail});
}

bool ties::enter(life in, spi::claim_ptr claim, std::shared_ptr<spi::wakeup> holder) {
  const std::lock_guard lock(mutex_);
  if (in == 0 || in != life_) return false;
  ++delivering_;
  const spi::claim_id id = claim->id;
  held_.insert_or_assign(id, one{std::move(claim), std::move(holder)});
  return true;
}

void ties::leave() {
  std::vector<std::shared_ptr<spi::wakeup>> those;
  error why;
  {
    const std::lock_guard lock(mutex_);
    if (--delivering_ > 0) return;
    those.swap(ended_);
    why = why_;
  }
  tell(those, why);
}

void ties::untie(const spi::claim_id& claim) noexcept {
  std::map<spi::claim_id, one>::node_type ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended = held_.extract(claim);
}

spi::claim_ptr ties::find(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? nullptr : found->second.claim;
}

std::size_t ties::count() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void ties::tell(const std::vector<std::shared_ptr<spi::wakeup>>& those, const error& why) {
  for (const auto& each : those) each->gone(why);
}

}  // namespace holdfast::sql
