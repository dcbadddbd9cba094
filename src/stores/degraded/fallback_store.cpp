#include "stores/degraded/fallback_store.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace holdfast::degraded {

namespace {

// How long the engine keeps a place in the queue without a sign of life.
constexpr duration waiter_lease = std::chrono::seconds(30);
// Claims that are left in the background have this long for an answer.
constexpr duration clean_up_limit = std::chrono::seconds(5);
// Claims that are remembered, as many as a client may have waiters; all others end by their ttl.
constexpr std::size_t most = 100'000;

// D2.
spi::granted marked(spi::granted grant) {
  grant.degraded = true;
  grant.fence = {};
  return grant;
}

// The answers of two stores to the two parts of a batch, merged in the order of the batch.
class joined_renewal {
 public:
  using answers = std::vector<spi::renewal>;

  joined_renewal(std::size_t size, spi::completion<answers> done)
      : all_(size), done_(std::move(done)) {}

  static spi::completion<answers> part(const std::shared_ptr<joined_renewal>& whole,
                                       std::vector<std::size_t> places) {
    return [whole, places = std::move(places)](result<answers> part) {
      {
        const std::lock_guard lock(whole->mutex_);
        for (std::size_t i = 0; part && i < places.size() && i < part->size(); ++i) {
          whole->all_[places[i]] = (*part)[i];
        }
        if (--whole->parts_ > 0) return;
      }
      whole->done_(std::move(whole->all_));
    };
  }

 private:
  std::mutex mutex_;
  answers all_;    // guarded by mutex_; unknown until answered
  int parts_ = 2;  // guarded by mutex_
  spi::completion<answers> done_;
};

}  // namespace

// Between the local fallback and a claim: marks what is pushed as degraded. Thread-safe.
class fallback_store::mark final : public spi::wakeup {
 public:
  explicit mark(std::shared_ptr<spi::wakeup> claim) : claim_(std::move(claim)) {}

  // From now on nothing is granted through it: all claims are leaving the local fallback.
  void mute() noexcept { muted_.store(true, std::memory_order_release); }
  // The claim was notified that it holds, by a push or otherwise.
  void believes() noexcept { believes_.store(true, std::memory_order_release); }
  [[nodiscard]] bool believed() const noexcept { return believes_.load(std::memory_order_acquire); }

  void notify(std::optional<spi::granted> grant) noexcept override {
    if (muted_.load(std::memory_order_acquire)) return;
    if (grant) believes();
    claim_->notify(grant ? std::optional(marked(*grant)) : std::nullopt);
  }
  void wanted() noexcept override { claim_->wanted(); }
  void gone(const error& why) noexcept override { claim_->gone(why); }

 private:
  const std::shared_ptr<spi::wakeup> claim_;
  std::atomic<bool> muted_{false};
  std::atomic<bool> believes_{false};
};

fallback_store::fallback_store(std::shared_ptr<spi::runtime> runtime,
                               std::shared_ptr<breaker_store> engine,
                               std::shared_ptr<spi::store> local)
    : forwarding_store(engine),
      runtime_(std::move(runtime)),
      engine_(std::move(engine)),
      local_(std::move(local)) {}

bool fallback_store::report_to(spi::reach_sink sink) {
  return engine_->report_to(
      [self = weak_from_this(), sink = std::move(sink)](spi::reach now, const error& why) mutable {
        const auto alive = self.lock();
        if (!alive) return;
        if (now == spi::reach::back) alive->hand_back();
        if (sink) sink(now, why);
      });
}

void fallback_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                             const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (here(claim->id) || engine_->open()) {
    return ask_here(claim, wakeup, context, std::move(done));
  }
  ask_engine(claim, wakeup, context, std::move(done));
}

void fallback_store::ask_engine(const spi::claim_ptr& claim,
                                const std::shared_ptr<spi::wakeup>& wakeup,
                                const spi::op_context& context,
                                spi::completion<spi::outcome> done) {
  {
    const std::lock_guard lock(mutex_);
    if (asked_.size() < most) asked_.insert(claim->id);
  }
  engine_->attempt(claim, wakeup, context,
                   [self = shared_from_this(), claim, wakeup, context,
                    done = std::move(done)](result<spi::outcome> answer) mutable {
                     if (!answer && answer.error() == spi::not_sent) {
                       return self->ask_here(claim, wakeup, context, std::move(done));
                     }
                     const bool unknown = !answer && answer.error() == errc::unavailable;
                     const bool waits =
                         answer && claim->queued && std::holds_alternative<spi::blocked>(*answer);
                     if (!unknown && !waits) self->settled(claim->id);
                     done(std::move(answer));
                   });
}

void fallback_store::ask_here(const spi::claim_ptr& claim,
                              const std::shared_ptr<spi::wakeup>& wakeup,
                              const spi::op_context& context, spi::completion<spi::outcome> done) {
  auto its = std::make_shared<mark>(wakeup);
  {
    const std::lock_guard lock(mutex_);
    degraded& at = here_[claim->id];
    at = {claim, its, at.known || asked_.contains(claim->id)};
  }
  local_->attempt(claim, std::move(its), context,
                  [self = shared_from_this(), claim, wakeup, context,
                   done = std::move(done)](result<spi::outcome> answer) mutable {
                    self->answered_here(claim, wakeup, context, std::move(answer), std::move(done));
                  });
}

void fallback_store::answered_here(const spi::claim_ptr& claim,
                                   const std::shared_ptr<spi::wakeup>& wakeup,
                                   const spi::op_context& context, result<spi::outcome> answer,
                                   spi::completion<spi::outcome> done) {
  // D3: the engine came back meanwhile, and hand_back() may have looked
  // before this claim was there.
  if (!here(claim->id) || !engine_->open()) {
    static_cast<void>(take(claim->id));
    forget_here(claim);
    return ask_engine(claim, wakeup, context, std::move(done));
  }
  auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
  if (grant != nullptr) {
    *grant = marked(*grant);
    granted_here(claim->id);
  } else if (!answer || !claim->queued) {
    if (const auto left = take(claim->id); left && left->known) leave_later(claim);
  }
  done(std::move(answer));
}

void fallback_store::watch(spi::claim_ptr claim, const spi::blocked& seen,
                           const spi::op_context& context, spi::completion<spi::armed> done) {
  // The local fallback turns no waiter away: asking again, it still has its place.
  if (here(claim->id)) return done(spi::armed::recheck);
  forwarding_store::watch(std::move(claim), seen, context, std::move(done));
}

void fallback_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                           spi::completion<spi::departure> done) {
  if (const auto left = take(claim->id)) {
    if (left->known || context.unanswered) leave_later(claim);
    return local_->leave(claim, context, std::move(done));
  }
  engine_->leave(claim, context,
                 [self = shared_from_this(), id = claim->id,
                  done = std::move(done)](result<spi::departure> answer) mutable {
                   if (answer) self->settled(id);
                   done(std::move(answer));
                 });
}

void fallback_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                           spi::completion<std::vector<spi::renewal>> done) {
  std::vector<spi::claim_ptr> ours;
  std::vector<spi::claim_ptr> theirs;
  std::vector<std::size_t> our_places;
  std::vector<std::size_t> their_places;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool local = here(claims[i]->id);
    (local ? our_places : their_places).push_back(i);
    (local ? ours : theirs).push_back(claims[i]);
  }
  if (ours.empty()) return engine_->renew(std::move(claims), context, std::move(done));
  auto whole = std::make_shared<joined_renewal>(claims.size(), std::move(done));
  auto our_part = joined_renewal::part(whole, std::move(our_places));
  auto mark_all = [self = shared_from_this(), ours,
                   part = std::move(our_part)](result<std::vector<spi::renewal>> answer) mutable {
    for (std::size_t i = 0; answer && i < answer->size(); ++i) {
      spi::renewal& each = (*answer)[i];
      each.grant = marked(each.grant);
      const bool holds =
          each.state == spi::hold_state::renewed || each.state == spi::hold_state::held;
      if (holds) self->granted_here(ours[i]->id);
      if (each.state == spi::hold_state::lost) static_cast<void>(self->take(ours[i]->id));
    }
    part(std::move(answer));
  };
  auto their_part = joined_renewal::part(whole, std::move(their_places));
  local_->renew(ours, context, std::move(mark_all));
  if (theirs.empty()) return their_part(std::vector<spi::renewal>{});
  engine_->renew(std::move(theirs), context, std::move(their_part));
}

void fallback_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  if (!here(claim->id)) return engine_->change(std::move(claim), to, context, std::move(done));
  local_->change(std::move(claim), to, context,
                 [done = std::move(done)](result<spi::granted> answer) mutable {
                   if (answer) answer = marked(*answer);
                   done(std::move(answer));
                 });
}

// D3, D4.
void fallback_store::hand_back() {
  std::map<spi::claim_id, degraded> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(here_);
  }
  // First mute all grants: when the holders leave, the waiters behind them would be granted.
  for (const auto& [id, each] : all) each.wakeup->mute();
  for (const auto& [id, each] : all) {
    forget_here(each.claim);
    // A waiter asks the engine next, by the same id: that id must not be left there.
    if (each.known && each.wakeup->believed()) leave_later(each.claim);
  }
  for (const auto& [id, each] : all) {
    each.wakeup->gone({errc::lost, "the engine answers again, and a degraded hold is not its own"});
  }
  std::vector<std::pair<spi::claim_ptr, time_point>> remains;
  {
    const std::lock_guard lock(mutex_);
    remains.swap(remains_);
  }
  const time_point now = runtime_->now();
  for (const auto& [claim, end] : remains) {
    if (now >= end) continue;
    engine_->leave(claim, {.deadline = now + clean_up_limit, .unanswered = true},
                   [](const result<spi::departure>&) {});
  }
}

void fallback_store::forget_here(const spi::claim_ptr& claim) {
  local_->leave(claim, {.deadline = runtime_->now() + clean_up_limit},
                [](const result<spi::departure>&) {});
}

bool fallback_store::here(const spi::claim_id& id) const {
  const std::lock_guard lock(mutex_);
  return here_.contains(id);
}

void fallback_store::granted_here(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  const auto found = here_.find(id);
  if (found != here_.end()) found->second.wakeup->believes();
}

std::optional<fallback_store::degraded> fallback_store::take(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  auto taken = here_.extract(id);
  return taken ? std::optional(std::move(taken.mapped())) : std::nullopt;
}

// It was granted, refused or left, so nothing of it waits at the engine.
void fallback_store::settled(const spi::claim_id& id) {
  const std::lock_guard lock(mutex_);
  asked_.erase(id);
}

void fallback_store::leave_later(const spi::claim_ptr& claim) {
  const time_point end = runtime_->now() + std::max(claim->ttl, waiter_lease);
  const std::lock_guard lock(mutex_);
  asked_.erase(claim->id);
  if (remains_.size() < most) remains_.emplace_back(claim, end);
}

void fallback_store::close() noexcept {
  local_->close();
  forwarding_store::close();
}

}  // namespace holdfast::degraded
