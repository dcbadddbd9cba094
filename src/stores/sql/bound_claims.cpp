#include "stores/sql/bound_claims.hpp"

#include <algorithm>
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
    unanswered_.clear();
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

bool bound_claims::enter_again(const spi::claim_id& claim, std::shared_ptr<spi::wakeup> holder) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return false;
  ++delivering_;
  found->second.holder.swap(holder);
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

bool bound_claims::untie(const spi::claim_id& claim, bool answered) {
  std::map<spi::claim_id, one>::node_type ended;  // destroyed under no lock
  const std::lock_guard lock(mutex_);
  ended = held_.extract(claim);
  const bool bound = unanswered_.erase(claim) > 0 || !ended.empty();
  if (bound && !answered) unanswered_.insert(claim);
  return bound;
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

void run_out::prove(const spi::claim_ptr& claim, time_point sent) {
  if (claim->lock_delay <= duration{0}) return;
  const time_point until = sent + std::min(claim->ttl, longest_belief);
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = !all_.insert_or_assign(claim->id, one{claim, until}).second;
  }
  if (!known) watch(claim->id, until);
}

bool run_out::extend(const spi::claim_ptr& claim, time_point sent) {
  if (claim->lock_delay <= duration{0}) return true;
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(claim->id);
  if (found == all_.end()) return false;
  found->second.until = sent + std::min(claim->ttl, longest_belief);
  return true;
}

void run_out::forget(const spi::claim_id& claim) {
  const std::lock_guard lock(mutex_);
  all_.erase(claim);
}

void run_out::close() {
  const std::lock_guard lock(mutex_);
  all_.clear();
}

void run_out::watch(const spi::claim_id& claim, time_point until) {
  runtime_->at(until, [weak = weak_from_this(), claim] {
    if (const auto self = weak.lock()) self->check(claim);
  });
}

// A renewal may have moved the end since the timer was set.
void run_out::check(const spi::claim_id& claim) {
  spi::claim_ptr over;
  time_point until;
  {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(claim);
    if (found == all_.end()) return;
    until = found->second.until;
    if (until <= runtime_->now()) {
      over = found->second.claim;
      all_.erase(found);
    }
  }
  if (over == nullptr) return watch(claim, until);
  over_(over);
}

}  // namespace holdfast::sql
