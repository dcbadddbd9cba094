#include "core/hold.hpp"

#include "core/blame.hpp"
#include "core/claim_runner.hpp"
#include "core/lease_token.hpp"
#include "core/local_queue.hpp"

#include <string>
#include <utility>

namespace holdfast::core {

hold::hold(std::shared_ptr<claim_runner> runner, std::shared_ptr<local_queue> local_queue,
           fence_token fence, time_point since)
    : runner_(std::move(runner)),
      since_(since),
      fence_(fence.value()),
      mode_(runner_->claim().mode),
      in_local_queue_(local_queue != nullptr),
      local_queue_(std::move(local_queue)) {}

hold::~hold() { release(); }

bool hold::valid() const noexcept {
  if (state_.load(std::memory_order_acquire) != state::held) return false;
  spi::runtime& runtime = runner_->owner().runtime();
  return runtime.now() < runner_->valid_until() && !runtime.forked();
}

time_point hold::valid_until() const noexcept {
  if (state_.load(std::memory_order_acquire) != state::held) return time_point::min();
  return runner_->valid_until();
}

fence_token hold::fence() const noexcept {
  return fence_token(fence_.load(std::memory_order_acquire));
}

duration hold::ttl() const noexcept { return runner_->ttl(); }

bool hold::degraded() const noexcept { return runner_->degraded(); }

const std::shared_ptr<spi::runtime>& hold::runtime() const noexcept {
  return runner_->owner().shared_runtime();
}

std::shared_ptr<engine> hold::owner() const { return runner_->owner().shared_from_this(); }

const spi::claim& hold::claim() const noexcept { return runner_->claim(); }

namespace {

// A source that was given out is stopped by the notifier alone: callbacks run where it is stopped.
std::stop_token token_of(std::optional<std::stop_source>& source, bool stopped) {
  if (stopped) {
    std::stop_source of_its_own;
    of_its_own.request_stop();
    return of_its_own.get_token();
  }
  if (!source) source.emplace();
  return source->get_token();
}

}  // namespace

std::stop_token hold::lost() {
  const std::lock_guard lock(mutex_);
  return token_of(lost_, gone());
}

bool hold::gone() const noexcept {
  const state now = state_.load();
  return now == state::lost || now == state::returned || runner_->owner().runtime().forked();
}

std::uint64_t hold::watch_end(spi::completion<void> told) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_watch_++;
    end_watches_.push_back({id, std::move(told)});
  }
  // Sequentially consistent with leave_held(): at least one of the two sees the other's write.
  end_watched_.store(true);
  if (gone()) {
    tell_ended({});
  } else if (state_.load() == state::released) {
    tell_ended(failure(errc::not_held, "released"));
  }
  return id;
}

void hold::ignore_end(std::uint64_t id) noexcept {
  spi::completion<void> dropped;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  for (auto each = end_watches_.begin(); each != end_watches_.end(); ++each) {
    if (each->id != id) continue;
    dropped = std::move(each->told);
    end_watches_.erase(each);
    return;
  }
}

void hold::tell_ended(const result<void>& how) noexcept {
  std::vector<end_watch> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(end_watches_);
  }
  for (end_watch& each : told) each.told(how);
}

std::shared_ptr<void> hold::keep(std::shared_ptr<void> companion) {
  const std::lock_guard lock(mutex_);
  if (!companion_) companion_ = std::move(companion);
  return companion_;
}

std::stop_token hold::wanted() {
  const std::lock_guard lock(mutex_);
  return token_of(wanted_, wanted_told_ || runner_->wanted_by_others());
}

bool hold::leave_held(state to) noexcept {
  state expected = state::held;
  return state_.compare_exchange_strong(expected, to);
}

void hold::disown() noexcept { leave_held(state::released); }

result<void> hold::detachable() const {
  const engine& owner = runner_->owner();
  const spi::claim& claim = runner_->claim();
  const auto refused = [&](error why) {
    return tl::unexpected(
        blamed(std::move(why), owner.settings().where, "detach", claim.resource.name));
  };
  if (owner.runtime().forked()) return failure(errc::cancelled, "in a forked child");
  const spi::mode mode = mode_.load(std::memory_order_acquire);
  if (auto fine = check_detachable(owner.store().caps(), mode, claim.role); !fine) {
    return refused(std::move(fine.error()));
  }
  if (degraded()) {
    return refused({errc::unsupported, "a degraded lease is known to this process only"});
  }
  if (claim.role == spi::role::leader) {
    return refused({errc::unsupported,
                    "a term of office belongs to its candidate: resign, and let another campaign"});
  }
  return {};
}

void hold::detach(spi::completion<std::string> done) {
  if (auto fine = detachable(); !fine) return done(tl::unexpected(std::move(fine.error())));
  if (!leave_held(state::released)) {
    return done(state_.load() == state::lost ? failure(errc::lost, "the lease had ended before")
                                             : failure(errc::not_held, "released before"));
  }
  engine& owner = runner_->owner();
  const spi::claim& claim = runner_->claim();
  lease_token token;
  token.id = owner.new_claim_id();
  token.fence = fence();
  token.ttl = claim.ttl;
  token.lock_delay = claim.lock_delay;
  token.permits = claim.permits;
  token.max = claim.max;
  token.mode = mode_.load(std::memory_order_acquire);
  token.role = claim.role;
  token.engine = owner.store().caps().engine;
  token.resource = claim.resource;
  count_release();
  const std::shared_ptr<local_queue> left = take_local_queue();
  runner_->transfer_to(detached_claim(token, claim.payload),
                       [token, done = std::move(done)](result<void> answer) mutable {
                         if (!answer) return done(tl::unexpected(std::move(answer.error())));
                         done(to_text(token));
                       });
  if (left) left->leave();
}

// It is no longer held, and nobody has lost it.
time_point hold::count_release() {
  engine& owner = runner_->owner();
  runner_->detach();
  if (end_watched_.load()) tell_ended(failure(errc::not_held, "released"));
  const time_point now = owner.runtime().now();
  const spi::claim& claim = runner_->claim();
  if (core::meter* meter = owner.meter()) {
    meter->released(primitive_of(claim.mode, claim.role), claim.resource.name, now - since_);
  }
  if (owner.observed()) owner.raise(event_kind::released, claim, fence(), now - since_);
  return now;
}

void hold::release(spi::completion<void> done) {
  if (!leave_held(state::released)) return release_lost(std::move(done));
  engine& owner = runner_->owner();
  if (owner.runtime().forked()) {
    // The lock is the parent's: nothing is sent from here, and no mutex of the parent's can be
    // trusted.
    if (done) done(failure(errc::cancelled, "in a forked child"));
    return;
  }
  const time_point now = count_release();
  const std::shared_ptr<local_queue> left = take_local_queue();
  if (left && left->pass_on(runner_, fence(), now)) {
    if (done) done({});
    return;
  }
  runner_->release(std::move(done));
  if (left) left->leave();
}

// The engine may keep others out until the revoked lease ends, for a holder that has yet to stop.
// This tells it that the holder has stopped.
void hold::release_lost(spi::completion<void> done) {
  state expected = state::lost;
  const bool first = state_.compare_exchange_strong(expected, state::returned);
  if (first && !runner_->owner().runtime().forked()) return runner_->release(std::move(done));
  if (!done) return;
  done(first ? failure(errc::lost, "the lease had ended before")
             : failure(errc::not_held, "released before"));
}

std::shared_ptr<local_queue> hold::take_local_queue() noexcept {
  if (!in_local_queue_.exchange(false, std::memory_order_acq_rel)) return nullptr;
  return std::move(local_queue_);
}

void hold::leave_local_queue() noexcept {
  if (const auto left = take_local_queue()) left->leave();
}

void hold::release() noexcept { release(spi::completion<void>{}); }

void hold::change(spi::mode to, spi::completion<void> done) {
  if (!valid()) return done(failure(errc::lost, "the lease has ended"));
  if (to == spi::mode::exclusive && downgrade_unanswered_.load(std::memory_order_acquire)) {
    return done(failure(errc::unavailable, "a downgrade may still arrive and undo this"));
  }
  // Perhaps no longer exclusive, even if the answer is lost: it must not be passed on as such, and
  // the next writer of this client has to wait in the engine's queue, or readers would overtake it.
  leave_local_queue();
  runner_->change(to, [self = shared_from_this(), to,
                       done = std::move(done)](result<fence_token> answer) mutable {
    if (!answer) {
      // A late upgrade only makes the engine stricter than we assume.
      const bool risky = to == spi::mode::shared && answer.error() == errc::unavailable;
      if (risky) self->downgrade_unanswered_.store(true, std::memory_order_release);
      return done(tl::unexpected<error>(std::move(answer.error())));
    }
    self->renumber(*answer);
    self->mode_.store(to, std::memory_order_release);
    done({});
  });
}

void hold::count_loss(const error& why, loss_cause cause) noexcept {
  engine& owner = runner_->owner();
  if (!owner.observed() && owner.meter() == nullptr) return;
  const spi::claim& claim = runner_->claim();
  const duration held = owner.runtime().now() - since_;
  if (core::meter* meter = owner.meter()) {
    meter->lost(primitive_of(claim.mode, claim.role), claim.resource.name, held, cause);
  }
  if (!owner.observed()) return;
  const error told = blamed(why, owner.settings().where, "hold", claim.resource.name);
  owner.raise(event_kind::lost, claim, fence(), held, &told, cause);
}

bool hold::tell_lost(const error& why, loss_cause cause) noexcept {
  if (!leave_held(state::lost)) return false;
  count_loss(why, cause);
  std::optional<std::stop_source> source;
  {
    const std::lock_guard lock(mutex_);
    source = lost_;
  }
  if (source) {
    runner_->owner().runtime().notify([source = *source]() mutable { source.request_stop(); });
  }
  if (end_watched_.load()) tell_ended({});
  leave_local_queue();
  return source.has_value();
}

void hold::tell_wanted() noexcept {
  std::optional<std::stop_source> source;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(wanted_told_, true)) return;
    source = wanted_;
  }
  if (source) {
    runner_->owner().runtime().notify(
        [source = std::move(*source)]() mutable { source.request_stop(); });
  }
}

}  // namespace holdfast::core
