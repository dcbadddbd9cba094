#include "core/acquisition.hpp"

#include "core/blame.hpp"
#include "core/claim_runner.hpp"
#include "core/dating.hpp"
#include "core/hold.hpp"
#include "core/lease_token.hpp"
#include "core/local_queue.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

acquisition::acquisition(std::shared_ptr<engine> engine, request&& request, time_point now,
                         std::shared_ptr<local_queue> local_queue,
                         spi::completion<std::shared_ptr<hold>> done)
    : engine_(std::move(engine)),
      request_(std::move(request)),
      started_(now),
      deadline_(end_of(now, std::max(request_.wait, duration{0}))),
      local_queue_(std::move(local_queue)),
      done_(std::move(done)) {}

acquisition::~acquisition() = default;

void acquisition::start() {
  if (!local_queue_) return pursue();
  switch (local_queue_->enter(shared_from_this(), request_.wait > duration{0})) {
    case local_queue::entry::entered:
      return pursue();
    case local_queue::entry::refused:
      answer(failure(errc::busy, "held or requested by this client"));
      return;
    case local_queue::entry::answered:
      return;
    case local_queue::entry::queued:
      break;
  }
  if (request_.thread != 0 && local_queue_->holding_thread() == request_.thread &&
      engine_->observed()) {
    engine_->raise(event_kind::self_wait,
                   {.resource = request_.resource, .mode = request_.mode, .role = request_.role});
  }
  engine_->schedule().schedule(shared_from_this(), deadline_);
  // Its turn, a cancel or a close may have come between entering the queue and here.
  bool cancelled = false;
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled = cancelled_;
    waits = done_ && !runner_;
  }
  if (!waits) engine_->schedule().drop(*this);
  if (cancelled || engine_->closed()) cancel();
}

void acquisition::pursue() {
  machine_settings settings;
  settings.ttl = request_.lock.ttl;
  settings.queued = request_.wait > duration{0};
  settings.renewed = request_.lock.renew == renew::automatic;
  settings.pushes = engine_->store().caps().pushes;
  settings.notice = request_.lock.notice;
  settings.lock_delay = request_.lock.lock_delay;
  settings.max_hold = request_.lock.max_hold;
  settings.deadline = deadline_;
  settings.retry = request_.lock.retry.value_or(engine_->settings().retry);
  if (!engine_->heard()) settings.first_contact = engine_->reach_limit(false);
  settings.limit = &engine_->settings().limit;
  settings.seed = engine_->runtime().random();

  auto claim = std::make_shared<spi::claim>();
  claim->id = engine_->new_claim_id();
  claim->resource = request_.resource;
  claim->mode = request_.mode;
  claim->role = request_.role;
  claim->permits = request_.permits;
  claim->max = request_.max;
  claim->fair = request_.lock.fair;
  claim->queued = settings.queued;
  claim->renewed = settings.renewed;
  claim->ttl = request_.lock.ttl;
  claim->lock_delay = request_.lock.lock_delay;
  claim->payload = request_.payload.empty() ? engine_->settings().payload : request_.payload;
  // Notice and longest hold belong to the claim: the next holder would be notified of a loss too
  // early.
  const bool passes_on = request_.lock.notice == duration{0} && request_.lock.max_hold == forever;
  if (local_queue_ && engine_->settings().hand_over_locally && passes_on) {
    claim->fence_block = engine_->settings().limit.local_hand_overs + 1;
  }

  auto runner =
      std::make_shared<claim_runner>(engine_, std::move(claim), settings, shared_from_this());
  {
    const std::lock_guard lock(mutex_);
    if (!done_ || cancelled_) {
      runner.reset();
    } else {
      runner_ = runner;
    }
  }
  engine_->schedule().drop(*this);  // the claim's own machine keeps the deadline from here on
  if (!runner) return fail({errc::cancelled, "cancelled while waiting"});
  engine_->departing().follow(request_.resource, [runner] { runner->start(); });
}

void acquisition::settled(const std::shared_ptr<claim_runner>& runner, result<fence_token> outcome,
                          time_point now) {
  if (!outcome) return fail(std::move(outcome.error()));
  if (local_queue_) {
    // The local fallback reserves no fences: nothing is passed on.
    const std::uint32_t block = runner->degraded() ? 1 : runner->claim().fence_block;
    const fence_token last(outcome->value() + block - 1);
    local_queue_->granted(now, last, request_.thread);
  }
  // The engine knows its own fence, not that of a hand-over in the process that detached the lease.
  const fence_token fence = request_.adopts ? request_.adopts->fence : *outcome;
  auto holder = std::make_shared<hold>(runner, local_queue_, fence, now);
  runner->attach(holder);
  answer(std::move(holder));
}

// From inside the local queue.
void acquisition::fail(error why) {
  if (local_queue_) local_queue_->vacate();
  answer(tl::unexpected<error>(std::move(why)));
  if (local_queue_) local_queue_->admit_next();
}

bool acquisition::take_over(const std::shared_ptr<claim_runner>& runner, fence_token fence) {
  bool cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    if (!done_) return false;
    cancelled = cancelled_;
  }
  if (cancelled) {
    answer(failure(errc::cancelled, "cancelled while waiting"));
    return false;
  }
  auto holder = std::make_shared<hold>(runner, local_queue_, fence, engine_->runtime().now());
  if (!runner->attach(holder)) {
    holder->disown();
    // The claim is gone, but we are still inside the local queue: go on with a claim of our own.
    pursue();
    return true;
  }
  engine_->schedule().drop(*this);
  if (engine_->observed()) engine_->raise(event_kind::handed_over, runner->claim(), fence);
  answer(std::move(holder));
  return true;
}

bool acquisition::answer(result<std::shared_ptr<hold>> outcome) {
  spi::completion<std::shared_ptr<hold>> done;
  {
    const std::lock_guard lock(mutex_);
    done = std::move(done_);
    runner_.reset();
  }
  if (!done) return false;
  if (!outcome) {
    const bool adopts = request_.adopts.has_value();
    if (adopts && outcome.error() == errc::not_held)
      outcome = failure(errc::lost, nothing_detached);
    outcome.error() = blamed(std::move(outcome.error()), engine_->settings().where,
                             adopts ? "adopt" : "acquire", request_.resource.name);
  }
  engine_->schedule().drop(*this);
  engine_->answered();
  if (engine_->observed() || engine_->meter() != nullptr) count(outcome);
  done(std::move(outcome));
  return true;
}

void acquisition::count(const result<std::shared_ptr<hold>>& outcome) {
  // The time of a grant is known; reading the clock costs.
  const time_point now = outcome ? (*outcome)->since() : engine_->runtime().now();
  const duration took = now - started_;
  if (core::meter* meter = engine_->meter()) {
    const primitive what = primitive_of(request_.mode, request_.role);
    if (outcome) {
      meter->granted(what, request_.resource.name, took);
    } else {
      meter->refused(what, request_.resource.name, outcome.error().code);
    }
  }
  if (!engine_->observed()) return;
  if (outcome) {
    engine_->raise(event_kind::granted, (*outcome)->claim(), (*outcome)->fence(), took);
    if ((*outcome)->degraded()) engine_->raise(event_kind::degraded, (*outcome)->claim());
    return;
  }
  const bool busy = outcome.error() == errc::busy || outcome.error() == errc::timed_out;
  engine_->raise(busy ? event_kind::busy : event_kind::failed,
                 {.resource = request_.resource, .mode = request_.mode, .role = request_.role}, {},
                 took, &outcome.error());
}

void acquisition::cancel() noexcept {
  if (engine_->runtime().forked()) return;  // nobody waits for an answer here
  std::shared_ptr<claim_runner> runner;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    runner = runner_;
  }
  if (runner) {
    runner->cancel({errc::cancelled, "cancelled while waiting"});
  } else if (local_queue_ && local_queue_->withdraw(*this)) {
    answer(failure(errc::cancelled, "cancelled while waiting"));
  }
}

void acquisition::give_up(error why) { answer(tl::unexpected<error>(std::move(why))); }

void acquisition::due(time_point now) {
  if (now < deadline_) {
    engine_->schedule().schedule(shared_from_this(), deadline_);
    return;
  }
  if (local_queue_ && local_queue_->withdraw(*this)) {
    answer(failure(errc::timed_out, "held by this client"));
  }
}

}  // namespace holdfast::core
