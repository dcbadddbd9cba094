#include "core/local_queue.hpp"

#include "core/acquisition.hpp"
#include "core/claim_runner.hpp"
#include "core/engine.hpp"
#include "core/mutant.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::core {

namespace {

// `usual`: the payload of requests that have none of their own.
bool same_terms(const spi::claim& held, const request& wanted, const std::string& usual) {
  // The term of a leader is not handed over.
  if (held.role == spi::role::leader || wanted.role == spi::role::leader) return false;
  // A lease that is not renewed has less time left than the next thread asked for.
  return held.mode == wanted.mode && held.ttl == wanted.lock.ttl && held.renewed &&
         wanted.lock.renew == renew::automatic && held.lock_delay == wanted.lock.lock_delay &&
         wanted.lock.notice == duration{0} && wanted.lock.max_hold == forever &&
         held.payload == (wanted.payload.empty() ? usual : wanted.payload);
}

}  // namespace

local_queue::local_queue(std::weak_ptr<engine> engine, spi::resource_id resource,
                         const limits& limit, unseen_waiters others)
    : engine_(std::move(engine)),
      resource_(std::move(resource)),
      limit_(limit),
      others_(others),
      keep_every_(std::min<std::uint32_t>(2, limit.keep_seldom)) {}

local_queue::~local_queue() {
  if (const auto alive = engine_.lock()) alive->forget_local_queue(resource_);
}

local_queue::entry local_queue::enter(const std::shared_ptr<acquisition>& who, bool may_wait) {
  std::unique_lock lock(mutex_);
  if (kept_) return take_kept(lock, who);
  if (!occupied_ && (line_.empty() || (resting_ && !may_wait))) {
    occupied_ = true;
    thread_ = 0;
    return entry::entered;
  }
  if (!may_wait) return entry::refused;
  who->sequence = next_sequence_++;
  line_.emplace(who->sequence, who);
  return entry::queued;
}

bool local_queue::withdraw(acquisition& who) noexcept {
  std::shared_ptr<acquisition> dropped;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  const auto found = line_.find(who.sequence);
  if (found == line_.end()) return false;
  dropped = std::move(found->second);
  line_.erase(found);
  return true;
}

void local_queue::granted(time_point now, fence_token last, std::uint64_t thread) noexcept {
  const std::lock_guard lock(mutex_);
  if (used_since_ == time_point::max() || now - left_at_ >= limit_.least_rest) used_since_ = now;
  granted_at_ = now;
  passed_on_ = 0;
  last_fence_ = last;
  thread_ = thread;
}

std::uint64_t local_queue::holding_thread() const {
  const std::lock_guard lock(mutex_);
  return thread_;
}

bool local_queue::may_pass_on(const claim_runner& runner, fence_token fence, time_point now) const {
  const duration limit = runner.wanted_by_others() ? limit_.turn : limit_.local_hand_over;
  return passed_on_ < limit_.local_hand_overs && now - granted_at_ < limit && fence < last_fence_ &&
         runner.valid_until() > now + runner.ttl() / 2;
}

bool local_queue::may_take_over(const acquisition& next, const claim_runner& runner) const {
  return same_terms(runner.claim(), next.wanted(), runner.owner().settings().payload);
}

bool local_queue::keep(std::unique_lock<std::mutex>& lock,
                       const std::shared_ptr<claim_runner>& runner, fence_token fence,
                       time_point now) {
  if (!runner->wanted_by_others() || runner->owner().closed()) return false;
  if (++not_kept_ < keep_every_) return false;
  not_kept_ = 0;
  const time_point end = std::min(now + limit_.keep, granted_at_ + limit_.turn);
  kept_ = {runner, fence, end};
  thread_ = 0;
  lock.unlock();
  runner->owner().schedule().schedule(shared_from_this(), end);
  return true;
}

local_queue::entry local_queue::take_kept(std::unique_lock<std::mutex>& lock,
                                          const std::shared_ptr<acquisition>& who) {
  const kept_claim kept = std::move(*kept_);
  kept_.reset();
  keep_every_ = 1;
  // Not the time of its request: this process may have been paused since then.
  const time_point now = kept.runner->owner().runtime().now();
  const bool fits = may_pass_on(*kept.runner, kept.fence, now) && may_take_over(*who, *kept.runner);
  thread_ = fits ? who->wanted().thread : 0;
  if (fits) ++passed_on_;
  lock.unlock();
  if (!fits) {
    kept.runner->release({});
    return entry::entered;
  }
  if (!who->take_over(kept.runner, fence_token(kept.fence.value() + 1))) {
    kept.runner->release({});
    leave();
  }
  return entry::answered;
}

bool local_queue::pass_on(const std::shared_ptr<claim_runner>& runner, fence_token fence,
                          time_point now) {
  for (;;) {
    std::shared_ptr<acquisition> next;
    {
      std::unique_lock lock(mutex_);
      if (!may_pass_on(*runner, fence, now)) return false;
      if (line_.empty()) return keep(lock, runner, fence, now);
      if (!may_take_over(*line_.begin()->second, *runner)) return false;
      next = pop();
      ++passed_on_;
      thread_ = next->wanted().thread;
    }
    if (next->take_over(runner, fence_token(fence.value() + 1))) return true;
  }
}

std::shared_ptr<acquisition> local_queue::pop() noexcept {
  auto next = std::move(line_.begin()->second);
  line_.erase(line_.begin());
  return next;
}

void local_queue::leave() {
  const auto alive = others_ == unseen_waiters::none ? nullptr : engine_.lock();
  std::unique_lock lock(mutex_);
  occupied_ = false;
  thread_ = 0;
  if (alive && begin_rest(alive->runtime().now(), alive->runtime().random())) {
    const time_point until = rest_until_;
    lock.unlock();
    return alive->schedule().schedule(shared_from_this(), until);
  }
  admit(lock);
}

// Waiters that poll find it free about every second time, whatever their interval, hence the random
// part; waiters that are woken need only a moment.
bool local_queue::begin_rest(time_point now, std::uint64_t random) noexcept {
  left_at_ = now;
  if (line_.empty() || used_since_ == time_point::max()) return false;
  const duration used = now - used_since_;
  if (used < limit_.local_hand_over) return false;
  const bool woken = others_ == unseen_waiters::woken_by_release;
  const duration rest =
      std::clamp(used, limit_.least_rest, woken ? limit_.least_rest : limit_.most_rest);
  const auto half = static_cast<std::uint64_t>((rest / 2).count()) + 1;
  rest_until_ = now + rest + duration(static_cast<duration::rep>(random % half));
  used_since_ = time_point::max();
  resting_ = true;
  return true;
}

void local_queue::due(time_point now) {
  std::unique_lock lock(mutex_);
  if (kept_) return end_keeping(lock, now);
  if (!resting_) return;
  if (const time_point until = rest_until_; now < until) {
    lock.unlock();
    if (const auto alive = engine_.lock()) alive->schedule().schedule(shared_from_this(), until);
    return;
  }
  resting_ = false;
  admit(lock);
}

void local_queue::end_keeping(std::unique_lock<std::mutex>& lock, time_point now) {
  const auto runner = kept_->runner;
  if (const time_point end = kept_->until; now < end) {
    lock.unlock();
    return runner->owner().schedule().schedule(shared_from_this(), end);
  }
  if (mutated(mutant::turn_never_ends)) return;
  kept_.reset();
  keep_every_ = std::min(keep_every_ * 2, limit_.keep_seldom);
  lock.unlock();
  runner->release({});
  leave();
}

void local_queue::vacate() noexcept {
  const std::lock_guard lock(mutex_);
  occupied_ = false;
  thread_ = 0;
}

void local_queue::admit_next() {
  std::unique_lock lock(mutex_);
  admit(lock);
}

// One at a time, in a loop instead of by recursion: one that is admitted may fail at once and leave
// again, ten thousand in a row when the engine is gone.
void local_queue::admit(std::unique_lock<std::mutex>& lock) {
  if (std::exchange(admitting_, true)) return;
  while (!occupied_ && !resting_ && !line_.empty()) {
    occupied_ = true;
    const auto next = pop();
    lock.unlock();
    next->pursue();
    lock.lock();
  }
  admitting_ = false;
}

void local_queue::give_up_all(const error& why) {
  std::map<std::uint64_t, std::shared_ptr<acquisition>> all;
  std::optional<kept_claim> kept;  // released with all others when the client is closed
  {
    const std::lock_guard lock(mutex_);
    all.swap(line_);
    kept.swap(kept_);
  }
  for (const auto& [sequence, who] : all) who->give_up(why);
  reentry_.forget_objects();
}

}  // namespace holdfast::core
