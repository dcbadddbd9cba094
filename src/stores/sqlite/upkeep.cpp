// What the store looks after by itself, once a second while it has claims or listeners: that the
// files are still its own, releases that found no answer, and latch changes that may have been
// missed. Nothing here is needed to be in time; it bounds what is lost.
#include "stores/sqlite/sqlite_store.hpp"

#include <utility>

namespace holdfast::sqlite {

namespace {

constexpr duration upkeep_interval = std::chrono::seconds(1);
constexpr duration repay_limit = std::chrono::seconds(5);

}  // namespace

void sqlite_store::schedule_upkeep() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || std::exchange(upkeep_scheduled_, true)) return;
  }
  reactor_->at(reactor_->now() + upkeep_interval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_up();
  });
}

// On the reactor's thread: looks at files, runs no transaction.
void sqlite_store::keep_up() {
  if (!begin_verb()) return;
  {
    const std::lock_guard lock(mutex_);
    upkeep_scheduled_ = false;
  }
  if (!broken() && (!local_claims_->empty() || !subscribers_->empty())) {
    look_after();
    schedule_upkeep();
  }
  end_verb();
}

void sqlite_store::look_after() {
  auto fine = session_->in_place();
  if (fine && life_->deleted()) {
    fine = failure(errc::unavailable,
                   "sqlite, " + folder_->path() + " was deleted while in use: its locks are lost");
  }
  if (!fine) return mark_broken(fine.error());
  subscribers_->tell_all_latches();
  if (!local_claims_->owed().empty()) {
    worker_->post(
        clock::now() + repay_limit,
        [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->repay();
        },
        [] {});
  }
}

bool sqlite_store::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

// Whoever opens the path from now on sees none of our claims.
void sqlite_store::mark_broken(const error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(broken_, true)) return;
  }
  const error lost{errc::lost, why.detail};
  for (const spi::claim_ptr& claim : local_claims_->claims()) {
    const auto wakeup = local_claims_->find(claim->id);
    local_claims_->strike(claim->id);
    if (wakeup) wakeup->gone(lost);
  }
}

void sqlite_store::repay() {
  if (!begin_verb()) return;
  for (const spi::claim_ptr& claim : local_claims_->owed()) {
    if (!do_leave(*claim, clock::now() + repay_limit)) break;
  }
  end_verb();
}

}  // namespace holdfast::sqlite
