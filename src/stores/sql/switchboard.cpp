#include "stores/sql/switchboard.hpp"

#include "stores/sql/answers.hpp"

#include <utility>

namespace holdfast::sql {

void switchboard::hear(std::string_view message) {
  const auto what = to_push(message);
  if (!what) return;
  switch (what->what) {
    case push::kind::event:
      return subscribers_->tell(what->key, what->event);
    case push::kind::latch:
      return subscribers_->tell_latch(what->key);
    default:
      wakeups_->notify(*what);
      if (what->what == push::kind::gone && taken_) taken_(what->claim);
  }
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
