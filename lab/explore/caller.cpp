#include "explore/caller.hpp"

#include <string>
#include <utility>

namespace holdfast::explore {

using sim::what;

namespace {

constexpr std::uint64_t own_thread = 1;

}  // namespace

class caller::lost_callback {
 public:
  lost_callback(caller& told, std::stop_token token)
      : callback_(std::move(token), on_lost{&told}) {}

 private:
  struct on_lost {
    caller* told;
    void operator()() const { told->told_lost(); }
  };
  std::stop_callback<on_lost> callback_;
};

caller::caller(const scenario& in, const role& part, sim::process& of, sim::event_loop& loop,
               sim::history& log, sim::claim_book& book, board& shared)
    : scenario_(in),
      role_(part),
      process_(of),
      loop_(loop),
      log_(log),
      book_(book),
      shared_(shared),
      rounds_left_(part.rounds),
      mode_(part.mode) {}

caller::~caller() = default;

sim::record caller::about(what kind) const {
  sim::record line;
  line.kind = kind;
  line.process = process_.index();
  line.resource = 0;
  line.acquisition = acquisition_;
  line.mode = mode_;
  line.permits = role_.permits;
  line.fair = role_.fair;
  line.hold = number_;
  line.claim = claim_;
  if (hold_) line.fence = hold_->fence().value();
  return line;
}

core::request caller::request() const {
  core::request made;
  made.resource.name = "r0";
  made.mode = role_.mode;
  made.permits = role_.permits;
  made.max = scenario_.max;
  made.lock.ttl = lease;
  made.lock.fair = role_.fair && scenario_.dialect == sim::dialect::queueing;
  made.lock.renew = scenario_.renewed ? renew::automatic : renew::never;
  made.lock.lock_delay = scenario_.lock_delay;
  made.lock.retry = {.first = std::chrono::milliseconds(50),
                     .limit = std::chrono::milliseconds(200)};
  made.payload = std::to_string(acquisition_);
  made.wait = role_.tries ? duration{0} : forever;
  if (role_.adopts) made.adopts = core::adoption{shared_.detached->id, shared_.detached->fence};
  return made;
}

void caller::ask() {
  --rounds_left_;
  acquisition_ = shared_.acquisitions++;
  number_ = sim::nobody;
  claim_ = sim::nobody;
  mode_ = role_.mode;
  changes_left_ = role_.changes;
  state_ = state::asking;
  if (scenario_.kind == sim::resource_kind::latch) return use_latch();
  sim::record line = about(role_.adopts ? what::adopt_invoked : what::acquire_invoked);
  line.number = role_.tries ? 0 : 1;
  log_.add(line);
  auto handle = process_.engine().acquire(
      request(), [self = std::weak_ptr(self_)](result<std::shared_ptr<core::hold>> answer) {
        const auto alive = self.lock();
        if (alive && !(*alive)->dead_) (*alive)->answered(std::move(answer));
      });
  if (state_ == state::asking) pending_ = std::move(handle);
}

void caller::cancel() {
  log_.add(about(what::cancel_invoked));
  const auto pending = pending_;  // the answer arrives inside this call and clears the member
  pending->cancel();
}

void caller::answered(result<std::shared_ptr<core::hold>> answer) {
  pending_.reset();
  if (answer) return keep(std::move(*answer));
  sim::record line = about(role_.adopts ? what::adopt_failed : what::acquire_failed);
  line.number = static_cast<int>(answer.error().code);
  log_.add(line);
  end_round();
}

void caller::keep(std::shared_ptr<core::hold> hold) {
  state_ = state::holding;
  holds_since_ = loop_.now();
  number_ = shared_.holds++;
  claim_ = book_.of(hold->claim(), process_.index()).number;
  hold_ = std::move(hold);
  lost_told_ = false;
  looked_at_ = false;
  seen_valid_ = false;
  ended_early_ = false;
  valid_until_ = {};
  sim::record line = about(role_.adopts ? what::adopt_granted : what::acquire_granted);
  line.number = scenario_.renewed ? 1 : 0;
  line.until = lease;
  line.lock_delay = scenario_.lock_delay;
  log_.add(line);
  reentry_.begin(own_thread, hold_);
  lost_ = std::make_unique<lost_callback>(*this, hold_->lost());
}

void caller::told_lost() {
  if (dead_ || state_ != state::holding) return;
  look_for_end();
  sim::record line = about(what::lost_told);
  line.number = ended_early_ ? 1 : 0;
  log_.add(line);
  lost_told_ = true;
  // Not from within the callback; and other events may come in between.
  loop_.at(
      loop_.now(), process_, sim::event_class::timer,
      [this] {
        if (!dead_ && state_ == state::holding) release();
      },
      sim::event_loop::notices);
}

void caller::release() {
  if (role_.detaches && !lost_told_) return detach();
  if (reentry_.enter(own_thread) == core::reentry::entry::entered) {
    log_.add(about(what::reentered));
    reentry_.exit(own_thread);
  }
  sim::record line = about(what::release_invoked);
  line.number = 1;
  log_.add(line);
  state_ = state::releasing;
  const auto hold = std::move(hold_);
  lost_.reset();
  reentry_.exit(own_thread);
  hold->release([self = std::weak_ptr(self_)](const result<void>& answer) {
    const auto alive = self.lock();
    if (!alive || (*alive)->dead_) return;
    sim::record answered = (*alive)->about(what::release_answered);
    answered.number = answer ? 0 : static_cast<int>(answer.error().code);
    (*alive)->log_.add(answered);
    (*alive)->end_round();
  });
}

void caller::detach() {
  const sim::record asked = about(what::detach_invoked);
  log_.add(asked);
  state_ = state::releasing;
  const auto hold = std::move(hold_);
  lost_.reset();
  reentry_.exit(own_thread);
  hold->detach([self = std::weak_ptr(self_), asked](const result<std::string>& answer) {
    const auto alive = self.lock();
    if (!alive || (*alive)->dead_) return;
    sim::record answered = asked;
    answered.kind = what::detach_answered;
    answered.number = answer ? 0 : static_cast<int>(answer.error().code);
    (*alive)->log_.add(answered);
    if (answer) (*alive)->shared_.detached = *core::parse_token(*answer);
    (*alive)->end_round();
  });
}

void caller::change() {
  const spi::mode to = mode_ == spi::mode::exclusive ? spi::mode::shared : spi::mode::exclusive;
  changes_left_ = false;
  changing_ = true;
  sim::record line = about(what::change_invoked);
  line.mode = to;
  log_.add(line);
  hold_->change(to, [self = std::weak_ptr(self_), to, hold = number_](result<void> answer) {
    const auto alive = self.lock();
    if (!alive || (*alive)->dead_ || (*alive)->number_ != hold || !(*alive)->hold_) return;
    caller& told = **alive;
    told.changing_ = false;
    if (answer) told.mode_ = to;
    sim::record changed = told.about(what::change_answered);
    changed.mode = to;
    changed.number = answer ? 0 : static_cast<int>(answer.error().code);
    told.log_.add(changed);
  });
}

void caller::end_round() {
  changing_ = false;
  state_ = rounds_left_ > 0 ? state::idle : state::finished;
  idle_since_ = loop_.now();
}

void caller::look_for_end() {
  if (!hold_ || dead_) return;
  if (hold_->valid()) {
    valid_until_ = hold_->valid_until();
    return;
  }
  if (looked_at_ && !seen_valid_) return;
  ended_early_ = seen_valid_ && process_.runtime().now() < valid_until_;
  looked_at_ = true;
  seen_valid_ = false;
  sim::record line = about(what::validity_ended);
  line.until = process_.clock().when(valid_until_.time_since_epoch());
  log_.add(line);
}

void caller::look_for_beginning() {
  if (!hold_ || dead_ || seen_valid_ || !hold_->valid()) return;
  looked_at_ = true;
  seen_valid_ = true;
  valid_until_ = hold_->valid_until();
  log_.add(about(what::validity_began));
}

}  // namespace holdfast::explore
