#include "sim/actor.hpp"

#include "core/lease_token.hpp"
#include "sim/process.hpp"
#include "sim/world.hpp"

#include <utility>

namespace holdfast::sim {

namespace {

constexpr std::uint64_t any_thread = 1;  // of an actor, for re-entrance: its own

}  // namespace

// Notified by the hold's stop token, as a user would be.
class actor::lost_callback {
 public:
  lost_callback(actor& told, std::int32_t hold, std::stop_token token)
      : callback_(std::move(token), on_lost{&told, hold}) {}

 private:
  struct on_lost {
    actor* told;
    std::int32_t hold;
    void operator()() const { told->told_lost(hold); }
  };
  std::stop_callback<on_lost> callback_;
};

actor::actor(world& in, process& of, std::int32_t number, random_source random)
    : world_(in), process_(of), number_(number), random_(random), rounds_left_(in.plan().rounds) {}

actor::~actor() = default;

void actor::die() noexcept { dead_ = true; }

record actor::about(what kind) const {
  record line;
  line.kind = kind;
  line.process = process_.index();
  line.resource = round_.resource;
  line.acquisition = round_.acquisition;
  line.mode = round_.request.mode;
  line.permits = round_.request.permits;
  line.fair = round_.request.lock.fair;
  if (holding_) {
    line.hold = holding_->number;
    line.claim = holding_->claim;
    line.fence = holding_->hold->fence().value();
  }
  return line;
}

void actor::after(duration pause, void (actor::*step)()) {
  world_.loop().at(world_.loop().now() + pause, process_, event_class::timer,
                   [self = shared_from_this(), step] {
                     if (!self->dead_) (self.get()->*step)();
                   });
}

void actor::start() {
  after(random_.between(duration{0}, world_.plan().longest_think), &actor::next_round);
}

void actor::next_round() {
  if (rounds_left_ == 0 || process_.closed) {
    finished_ = true;
    return;
  }
  --rounds_left_;
  draw_round();
  const auto kind = world_.plan().resources[static_cast<std::size_t>(round_.resource)].kind;
  if (kind == resource_kind::latch) return use_latch();
  acquire();
}

void actor::draw_round() {
  const plan& plan = world_.plan();
  round_ = {};
  steps_ = 0;
  round_.resource = static_cast<std::int32_t>(random_.below(plan.resources.size()));
  round_.acquisition = world_.next_acquisition();
  round_.hold = random_.chance(200) ? duration{0} : random_.between(duration{0}, plan.longest_hold);
  round_.asks_for_answer = random_.chance(700);
  round_.reentries = random_.chance(200) ? 2 : 0;
  if (random_.chance(plan.cancels)) {
    round_.cancel_after_steps = static_cast<std::uint32_t>(random_.between(1, 6));
  }
  if (plan.moves > 0) round_.moves = random_.chance(plan.moves);
  draw_request();
}

void actor::start_adopting(const token& detached) {
  const auto read = core::parse_token(detached.text);
  rounds_left_ = 0;
  round_ = {};
  round_.resource = detached.resource;
  round_.acquisition = world_.next_acquisition();
  round_.hold = random_.between(duration{0}, world_.plan().longest_hold);
  round_.adopted = true;
  round_.moves = random_.chance(world_.plan().moves / 2);
  core::request& request = round_.request;
  request.resource = read->resource;
  request.mode = read->mode;
  request.permits = read->permits;
  request.max = read->max;
  request.lock.ttl = read->ttl;
  request.lock.lock_delay = read->lock_delay;
  request.lock.retry = world_.plan().retry;
  request.payload = std::to_string(round_.acquisition);
  request.wait = random_.between(duration{1}, world_.plan().longest_wait);
  request.adopts = core::adoption{read->id, read->fence};
  after(duration{0}, &actor::acquire);
}

void actor::draw_request() {
  const plan& plan = world_.plan();
  const resource_plan& resource = plan.resources[static_cast<std::size_t>(round_.resource)];
  core::request& request = round_.request;
  request.resource.name = "r" + std::to_string(round_.resource);
  request.lock.ttl = plan.ttl;
  request.lock.fair = random_.chance(resource.fair);
  request.lock.renew = random_.chance(plan.unrenewed) ? renew::never : renew::automatic;
  request.lock.lock_delay = plan.lock_delay;
  request.lock.retry = plan.retry;
  if (random_.chance(100)) request.lock.notice = plan.ttl / random_.between(3, 10);
  if (random_.chance(plan.named)) request.payload = std::to_string(round_.acquisition);
  if (random_.chance(plan.tries)) {
    request.wait = duration{0};
  } else if (!random_.chance(plan.forever)) {
    request.wait = random_.between(duration{1}, plan.longest_wait);
  }
  switch (resource.kind) {
    case resource_kind::mutex:
    case resource_kind::latch:
      return;
    case resource_kind::shared:
      request.mode = random_.chance(600) ? spi::mode::shared : spi::mode::exclusive;
      if (random_.chance(plan.changes)) {
        round_.changes_to =
            request.mode == spi::mode::shared ? spi::mode::exclusive : spi::mode::shared;
      }
      return;
    case resource_kind::semaphore:
      request.mode = spi::mode::permit;
      request.max = resource.max;
      request.permits = static_cast<std::uint32_t>(random_.between(1, resource.max));
      return;
  }
}

void actor::acquire() {
  record line = about(round_.adopted ? what::adopt_invoked : what::acquire_invoked);
  line.number = round_.request.wait > duration{0} ? 1 : 0;
  world_.record(line);
  const std::int32_t acquisition = round_.acquisition;
  acquiring_ = acquisition;
  cancels_soon_ = false;
  const bool by_time = round_.request.payload.empty() || round_.cancel_after_steps > 4;
  auto handle = process_.engine().acquire(
      round_.request, [self = weak_from_this()](result<std::shared_ptr<core::hold>> answer) {
        const auto alive = self.lock();
        if (alive && !alive->dead_) alive->acquired(std::move(answer));
      });
  if (acquiring_ != acquisition) return;
  pending_ = std::move(handle);
  if (cancels_soon_) return cancel(acquisition);
  if (round_.cancel_after_steps == 0 || !by_time) return;
  world_.loop().at(
      world_.loop().now() + random_.between(duration{0}, world_.plan().longest_wait / 2), process_,
      event_class::timer, [self = shared_from_this(), acquisition] { self->cancel(acquisition); });
}

void actor::stepped(std::int32_t acquisition) {
  if (acquisition == nobody || acquisition != acquiring_ || dead_) return;
  if (++steps_ != round_.cancel_after_steps) return;
  if (!pending_) {
    cancels_soon_ = true;
  } else {
    cancel(acquisition);
  }
}

void actor::cancel(std::int32_t acquisition) {
  if (dead_ || acquiring_ != acquisition || !pending_) return;
  world_.record(about(what::cancel_invoked));
  // A copy: the answer arrives inside this call and clears the member.
  const auto pending = pending_;
  pending->cancel();
}

void actor::acquired(result<std::shared_ptr<core::hold>> answer) {
  acquiring_ = nobody;
  pending_.reset();
  if (answer) return keep(std::move(*answer));
  record line = about(round_.adopted ? what::adopt_failed : what::acquire_failed);
  line.number = static_cast<int>(answer.error().code);
  world_.record(line);
  end_round();
}

void actor::end_round() {
  after(random_.between(duration{0}, world_.plan().longest_think), &actor::next_round);
}

void actor::keep(std::shared_ptr<core::hold> hold) {
  const std::int32_t number = world_.next_hold();
  if (round_.adopted) world_.note_adoption();
  holding_ = holding{};
  holding_->number = number;
  holding_->claim = world_.book().of(hold->claim(), process_.index()).number;
  holding_->hold = std::move(hold);
  record line = about(round_.adopted ? what::adopt_granted : what::acquire_granted);
  line.number = round_.request.lock.renew == renew::automatic ? 1 : 0;
  line.until = round_.request.lock.ttl;
  line.lock_delay = round_.request.lock.lock_delay;
  world_.record(line);
  reentry_.begin(any_thread, holding_->hold);
  lost_ = std::make_unique<lost_callback>(*this, number, holding_->hold->lost());
  after(round_.hold / 2, &actor::work);
}

void actor::work() {
  if (!holding_) return;
  for (; round_.reentries > 0; --round_.reentries) reenter();
  if (round_.changes_to) return change();
  after(round_.hold / 2, round_.moves ? &actor::detach : &actor::give_back);
}

void actor::reenter() {
  if (reentry_.enter(any_thread) != core::reentry::entry::entered) return;
  world_.record(about(what::reentered));
  reentry_.exit(any_thread);
}

void actor::change() {
  const spi::mode to = *std::exchange(round_.changes_to, std::nullopt);
  record line = about(what::change_invoked);
  line.mode = to;
  world_.record(line);
  holding_->hold->change(
      to, [self = weak_from_this(), to, hold = holding_->number](result<void> answer) {
        const auto alive = self.lock();
        if (!alive || alive->dead_ || !alive->holding_ || alive->holding_->number != hold) return;
        alive->changed(to, answer);
      });
}

void actor::changed(spi::mode to, const result<void>& answer) {
  record line = about(what::change_answered);
  line.mode = to;
  line.number = answer ? 0 : static_cast<int>(answer.error().code);
  world_.record(line);
  after(round_.hold / 2, &actor::give_back);
}

void actor::told_lost(std::int32_t hold) {
  if (dead_ || !holding_ || holding_->number != hold) return;
  // Its validity has ended, perhaps during this very event.
  look_for_end();
  record line = about(what::lost_told);
  line.number = holding_->ended_early ? 1 : 0;
  world_.record(line);
  after(duration{0}, &actor::give_back);
}

void actor::give_back() {
  if (!holding_) return;
  record line = about(what::release_invoked);
  line.number = round_.asks_for_answer ? 1 : 0;
  world_.record(line);
  const std::int32_t number = holding_->number;
  const auto hold = std::move(holding_->hold);
  holding_.reset();
  lost_.reset();
  reentry_.exit(any_thread);
  if (!round_.asks_for_answer) {
    hold->release();
    return end_round();
  }
  hold->release([self = weak_from_this(), number](const result<void>& answer) {
    const auto alive = self.lock();
    if (!alive || alive->dead_) return;
    record answered = alive->about(what::release_answered);
    answered.hold = number;
    answered.number = answer ? 0 : static_cast<int>(answer.error().code);
    alive->world_.record(answered);
    alive->end_round();
  });
}

void actor::detach() {
  if (!holding_) return;
  const record asked = about(what::detach_invoked);
  world_.record(asked);
  const auto hold = std::move(holding_->hold);
  holding_.reset();
  lost_.reset();
  reentry_.exit(any_thread);
  hold->detach([self = weak_from_this(), asked](const result<std::string>& answer) {
    const auto alive = self.lock();
    if (!alive || alive->dead_) return;
    record answered = asked;
    answered.kind = what::detach_answered;
    answered.number = answer ? 0 : static_cast<int>(answer.error().code);
    alive->world_.record(answered);
    if (answer) alive->world_.pass_on({*answer, asked.resource}, alive->random_);
    alive->end_round();
  });
}

void actor::look_for_end() {
  if (!holding_ || dead_) return;
  const bool valid = holding_->hold->valid();
  if (valid) {
    holding_->valid_until = holding_->hold->valid_until();
    return;
  }
  if (holding_->looked_at && !holding_->seen_valid) return;
  const time_point due = holding_->valid_until - round_.request.lock.notice;
  holding_->ended_early = holding_->seen_valid && process_.runtime().now() < due;
  holding_->looked_at = true;
  holding_->seen_valid = false;
  record line = about(what::validity_ended);
  line.until = process_.clock().when(holding_->valid_until.time_since_epoch());
  world_.record(line);
}

void actor::look_for_beginning() {
  if (!holding_ || dead_ || holding_->seen_valid || !holding_->hold->valid()) return;
  holding_->looked_at = true;
  holding_->seen_valid = true;
  holding_->valid_until = holding_->hold->valid_until();
  record line = about(what::validity_began);
  line.number = world_.book().of(holding_->hold->claim(), process_.index()).unprotected ? 1 : 0;
  world_.record(line);
}

}  // namespace holdfast::sim
