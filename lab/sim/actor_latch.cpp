// What an actor does with a latch: sets it if nobody has, counts it down under an id that stays the
// same when it is repeated, or waits until it is zero.
#include "sim/actor.hpp"
#include "sim/process.hpp"
#include "sim/world.hpp"

#include <utility>

namespace holdfast::sim {

namespace {

constexpr duration pause_between = std::chrono::milliseconds(20);
constexpr std::int64_t greatest_count = 3;

}  // namespace

spi::op_context actor::latch_context() {
  const plan& plan = world_.plan();
  return {.deadline = process_.runtime().now() + core::command_limit(plan.limit, plan.ttl)};
}

void actor::use_latch() {
  world::latch_book& book = world_.latch(round_.resource);
  spi::latch_change change;
  change.id = process_.engine().new_claim_id();
  if (!std::exchange(book.claimed, true)) {
    change.what = spi::latch_change::kind::set;
    change.count = static_cast<std::uint32_t>(random_.between(1, greatest_count));
    record line = about(what::latch_set);
    line.number = change.count;
    world_.record(line);
    return set_latch(change);
  }
  if (random_.chance(500)) {
    if (!book.set) return end_round();
    world_.record(about(what::latch_down));
    return down_latch(change);
  }
  latch_deadline_ = world_.loop().now() + world_.plan().longest_wait;
  watch_latch();
}

void actor::set_latch(spi::latch_change change) {
  process_.store().change_latch(
      round_.request.resource, change, latch_context(),
      [self = weak_from_this(), change](const result<spi::latch_state>& answer) {
        const auto alive = self.lock();
        if (!alive || alive->dead_) return;
        if (answer) alive->world_.latch(alive->round_.resource).set = true;
        if (answer || answer.error() != errc::unavailable) return alive->end_round();
        alive->again([alive, change] { alive->set_latch(change); });
      });
}

void actor::down_latch(spi::latch_change change) {
  process_.store().change_latch(
      round_.request.resource, change, latch_context(),
      [self = weak_from_this(), change](const result<spi::latch_state>& answer) {
        const auto alive = self.lock();
        if (!alive || alive->dead_) return;
        if (answer && answer->count) {
          record line = alive->about(what::latch_read);
          line.number = *answer->count;
          alive->world_.record(line);
        }
        if (answer || answer.error() != errc::unavailable) return alive->end_round();
        alive->again([alive, change] { alive->down_latch(change); });
      });
}

void actor::again(spi::task step) {
  if (process_.closed) return end_round();
  world_.loop().at(world_.loop().now() + pause_between, process_, event_class::timer,
                   [self = shared_from_this(), step = std::move(step)]() mutable {
                     if (!self->dead_) step();
                   });
}

void actor::watch_latch() {
  auto watch = process_.store().watch_latch(round_.request.resource, [self = weak_from_this()] {
    const auto alive = self.lock();
    if (!alive || alive->dead_) return;
    if (alive->reading_latch_) {
      alive->latch_changed_ = true;
    } else {
      alive->read_latch();
    }
  });
  latch_watch_ = std::move(*watch);
  read_latch();
}

void actor::read_latch() {
  reading_latch_ = true;
  latch_changed_ = false;
  process_.store().read_latch(round_.request.resource, latch_context(),
                              [self = weak_from_this()](const result<spi::latch_state>& answer) {
                                const auto alive = self.lock();
                                if (alive && !alive->dead_) alive->latch_was_read(answer);
                              });
}

void actor::latch_was_read(const result<spi::latch_state>& answer) {
  reading_latch_ = false;
  if (answer && answer->count) {
    record line = about(*answer->count == 0 ? what::latch_told : what::latch_read);
    line.number = *answer->count;
    world_.record(line);
    if (*answer->count == 0) return end_latch_wait();
  }
  if (world_.loop().now() >= latch_deadline_ || process_.closed) return end_latch_wait();
  if (latch_changed_) return read_latch();
  again([self = shared_from_this()] {
    if (self->latch_watch_ && !self->reading_latch_) self->read_latch();
  });
}

void actor::end_latch_wait() {
  latch_watch_.reset();
  end_round();
}

}  // namespace holdfast::sim
