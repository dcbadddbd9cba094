// What a caller does with a latch: sets it, then counts it down once, each under an id that stays
// the same when it is repeated.
#include "core/limits.hpp"
#include "explore/caller.hpp"

namespace holdfast::explore {

using sim::what;

namespace {

constexpr std::uint32_t latch_count = 2;
constexpr duration pause_between = std::chrono::milliseconds(20);

}  // namespace

void caller::use_latch() {
  sim::record line = about(what::latch_set);
  line.number = latch_count;
  log_.add(line);
  change_latch({.what = spi::latch_change::kind::set,
                .count = latch_count,
                .id = process_.engine().new_claim_id()});
}

void caller::change_latch(const spi::latch_change& change) {
  const duration limit = core::command_limit(core::default_limits, lease);
  process_.store().change_latch(
      request().resource, change, {.deadline = process_.runtime().now() + limit},
      [self = std::weak_ptr(self_), change](const result<spi::latch_state>& answer) {
        const auto alive = self.lock();
        if (alive && !(*alive)->dead_) (*alive)->latch_changed(change, answer);
      });
}

void caller::latch_changed(const spi::latch_change& change,
                           const result<spi::latch_state>& answer) {
  if (!answer && answer.error() == errc::unavailable) {
    loop_.at(loop_.now() + pause_between, process_, sim::event_class::timer, [this, change] {
      if (!dead_) change_latch(change);
    });
    return;
  }
  if (answer && change.what == spi::latch_change::kind::set) {
    log_.add(about(what::latch_down));
    return change_latch({.id = process_.engine().new_claim_id()});
  }
  if (answer && answer->count) {
    sim::record line = about(what::latch_read);
    line.number = *answer->count;
    log_.add(line);
  }
  end_round();
}

}  // namespace holdfast::explore
