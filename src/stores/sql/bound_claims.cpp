#include "stores/sql/bound_claims.hpp"

#include <utility>

namespace holdfast::sql {

void bound_claims::begin(life now) {
  const std::lock_guard lock(mutex_);
  life_ = now;
}

void bound_claims::end(const error& why) {
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

bool bound_claims::enter(life in, spi::claim_ptr claim, std::shared_ptr<spi::wakeup> holder) {
  const std::lock_guard lock(mutex_);
  if (in == 0 || in != life_) return false;
  ++delivering_;
  const spi::claim_id id = claim->id;
  held_.insert_or_assign(id, one{std::move(claim), std::move(holder)});
  return true;
}

void bound_claims::leave() {
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

void bound_claims::untie(const spi::claim_id& claim) noexcept {
  std::map<spi::claim_id, one>::node_type ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended = held_.extract(claim);
}

spi::claim_ptr bound_claims::find(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? nullptr : found->second.claim;
}

std::size_t bound_claims::count() const {
  const std::lock_guard lock(mutex_);
  return held_.size();
}

void bound_claims::tell(const std::vector<std::shared_ptr<spi::wakeup>>& those, const error& why) {
  for (const auto& each : those) each->gone(why);
}

}  // namespace holdfast::sql
