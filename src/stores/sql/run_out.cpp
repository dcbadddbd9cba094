#include "stores/sql/run_out.hpp"

#include "stores/sql/bound_claims.hpp"

#include <algorithm>

namespace holdfast::sql {

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
