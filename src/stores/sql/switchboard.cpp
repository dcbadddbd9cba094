#include "stores/sql/switchboard.hpp"

#include "stores/sql/answers.hpp"

#include <utility>

namespace holdfast::sql {

void switchboard::hear(std::string_view message) {
  const auto what = to_notification(message);
  if (!what) return;
  if (what->event) return subscribers_->tell(what->key, *what->event);
  if (!what->push) return subscribers_->tell_latch(what->key);
  wakeups_->notify(*what->push);
  if (what->push->what == stores::push::kind::gone && taken_) taken_(what->push->claim);
}

void switchboard::opened() {
  answer({});
  wakeups_->notify_all();
  subscribers_->tell_all_latches();
}

void switchboard::await(spi::completion<void> done) {
  const std::lock_guard lock(mutex_);
  awaited_.push_back(std::move(done));
}

void switchboard::answer(const result<void>& outcome) {
  std::vector<spi::completion<void>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(awaited_);
  }
  for (auto& each : all) each(outcome);
}

}  // namespace holdfast::sql
