#include "stores/outage/fallback_store.hpp"

#include "stores/outage/degraded_claims.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::outage {

namespace {

// How long the engine keeps a place in line without a sign of life.
constexpr duration waiter_lease = std::chrono::seconds(30);
// What is left behind the scenes has this long for an answer.
constexpr duration clean_up_limit = std::chrono::seconds(5);

// D2.
spi::granted marked(spi::granted grant) {
  grant.degraded = true;
  grant.fence = {};
  return grant;
}

// The answers of two stores to the two parts of a batch, put together in the batch's order.
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

void fallback_wakeup::notify(std::optional<spi::granted> grant) noexcept {
  if (muted_.load(std::memory_order_acquire)) return;
  if (grant) believes();
  claim_->notify(grant ? std::optional(marked(*grant)) : std::nullopt);
}

// All that the store does: it outlives it while a completion is out. Thread-safe; no lock is held while
// a store or a claim is called.
class fallback_store::office : public std::enable_shared_from_this<office> {
 public:
  office(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<breaker_store> engine,
         std::shared_ptr<spi::store> local)
      : runtime_(std::move(runtime)), engine_(std::move(engine)), local_(std::move(local)) {}

  void listen() {
    engine_->report_to([self = weak_from_this()](spi::reach now, const error& why) {
      const auto alive = self.lock();
      if (!alive) return;
      if (now == spi::reach::back) alive->hand_back();
      std::shared_ptr<spi::reach_sink> sink;
      {
        const std::lock_guard lock(alive->mutex_);
        sink = alive->sink_;
      }
      if (sink && *sink) (*sink)(now, why);
    });
  }

  void report_to(spi::reach_sink sink) {
    const std::lock_guard lock(mutex_);
    sink_ = std::make_shared<spi::reach_sink>(std::move(sink));
  }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) {
    if (degraded_claims_.here(claim->id) || engine_->open()) {
      return attempt_here(std::move(claim), std::move(wakeup), context, std::move(done));
    }
    ask_engine(claim, wakeup, context, std::move(done));
  }

  void leave(const spi::claim_ptr& claim, const spi::op_context& context,
             spi::completion<spi::departure> done) {
    if (const auto entry = degraded_claims_.take(claim->id)) {
      if (entry->known || context.unanswered) leave_later(claim);
      return local_->leave(claim, context, std::move(done));
    }
    engine_->leave(claim, context,
                   [self = shared_from_this(), id = claim->id,
                    done = std::move(done)](result<spi::departure> answer) mutable {
                     if (answer) self->degraded_claims_.settled(id);
                     done(std::move(answer));
                   });
  }

  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done);

  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) {
    if (!degraded_claims_.here(claim->id)) {
      return engine_->change(std::move(claim), to, context, std::move(done));
    }
    local_->change(std::move(claim), to, context,
                   [done = std::move(done)](result<spi::granted> answer) mutable {
                     if (answer) answer = marked(*answer);
                     done(std::move(answer));
                   });
  }

  [[nodiscard]] bool here(const spi::claim_id& id) const { return degraded_claims_.here(id); }

  void close() noexcept {
    {
      const std::lock_guard lock(mutex_);
      sink_.reset();
    }
    local_->close();
  }

 private:
  void ask_engine(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                  const spi::op_context& context, spi::completion<spi::outcome> done) {
    degraded_claims_.asked(claim->id);
    engine_->attempt(claim, wakeup, context,
                     [self = shared_from_this(), claim, wakeup, context,
                      done = std::move(done)](result<spi::outcome> answer) mutable {
                       self->answered(claim, wakeup, context, std::move(answer), std::move(done));
                     });
  }

  void answered(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                const spi::op_context& context, result<spi::outcome> answer,
                spi::completion<spi::outcome> done) {
    if (!answer && answer.error() == spi::not_sent) {
      return attempt_here(claim, wakeup, context, std::move(done));
    }
    const bool unknown = !answer && answer.error() == errc::unavailable;
    const bool waits = answer && claim->queued && std::holds_alternative<spi::blocked>(*answer);
    if (!unknown && !waits) degraded_claims_.settled(claim->id);
    done(std::move(answer));
  }

  void attempt_here(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                    const spi::op_context& context, spi::completion<spi::outcome> done) {
    auto mark = std::make_shared<fallback_wakeup>(wakeup);
    degraded_claims_.moved_here(claim, mark);
    local_->attempt(claim, std::move(mark), context,
                    [self = shared_from_this(), claim, wakeup, context,
                     done = std::move(done)](result<spi::outcome> answer) mutable {
                      self->answered_here(claim, wakeup, context, std::move(answer),
                                          std::move(done));
                    });
  }

  void answered_here(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                     const spi::op_context& context, result<spi::outcome> answer,
                     spi::completion<spi::outcome> done) {
    // D3: the engine came back meanwhile. Whoever hands all back may have looked before we came.
    if (!degraded_claims_.here(claim->id) || !engine_->open()) {
      static_cast<void>(degraded_claims_.take(claim->id));
      forget_here(claim);
      return ask_engine(claim, wakeup, context, std::move(done));
    }
    auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
    if (grant != nullptr) {
      *grant = marked(*grant);
      degraded_claims_.granted(claim->id);
    } else if (!answer || !claim->queued) {
      if (const auto entry = degraded_claims_.take(claim->id); entry && entry->known)
        leave_later(claim);
    }
    done(std::move(answer));
  }

  // D3, D4.
  void hand_back() {
    const std::vector<degraded_claims::entry> all = degraded_claims_.take_all();
    // First nobody hears of a grant any more: the holders' leaving would let in who waits behind them.
    for (const degraded_claims::entry& each : all) each.wakeup->mute();
    for (const degraded_claims::entry& each : all) {
      forget_here(each.claim);
      // Who waits asks the engine next, by the same id: that must not be left there.
      if (each.known && each.wakeup->believed()) leave_later(each.claim);
    }
    for (const degraded_claims::entry& each : all) {
      each.wakeup->gone(
          {errc::lost, "the engine answers again, and a degraded hold is not its own"});
    }
    const time_point now = runtime_->now();
    for (const spi::claim_ptr& each : degraded_claims_.take_remains(now)) {
      engine_->leave(each, {.deadline = now + clean_up_limit, .unanswered = true},
                     [](const result<spi::departure>&) {});
    }
  }

  void forget_here(const spi::claim_ptr& claim) {
    local_->leave(claim, {.deadline = runtime_->now() + clean_up_limit},
                  [](const result<spi::departure>&) {});
  }
  void leave_later(const spi::claim_ptr& claim) {
    degraded_claims_.leave_later(claim, runtime_->now() + std::max(claim->ttl, waiter_lease));
  }

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<breaker_store> engine_;
  const std::shared_ptr<spi::store> local_;
  degraded_claims degraded_claims_;

  std::mutex mutex_;
  std::shared_ptr<spi::reach_sink> sink_;  // guarded by mutex_
};

void fallback_store::office::renew(std::vector<spi::claim_ptr> claims,
                                   const spi::op_context& context,
                                   spi::completion<std::vector<spi::renewal>> done) {
  std::vector<spi::claim_ptr> ours;
  std::vector<spi::claim_ptr> theirs;
  std::vector<std::size_t> our_places;
  std::vector<std::size_t> their_places;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool here = degraded_claims_.here(claims[i]->id);
    (here ? our_places : their_places).push_back(i);
    (here ? ours : theirs).push_back(claims[i]);
  }
  if (ours.empty()) return engine_->renew(std::move(claims), context, std::move(done));
  auto whole = std::make_shared<joined_renewal>(claims.size(), std::move(done));
  auto our_part = joined_renewal::part(whole, std::move(our_places));
  auto mark = [self = shared_from_this(), ours,
               part = std::move(our_part)](result<std::vector<spi::renewal>> answer) mutable {
    for (std::size_t i = 0; answer && i < answer->size(); ++i) {
      spi::renewal& each = (*answer)[i];
      each.grant = marked(each.grant);
      const bool holds =
          each.state == spi::hold_state::renewed || each.state == spi::hold_state::held;
      if (holds) self->degraded_claims_.granted(ours[i]->id);
      if (each.state == spi::hold_state::lost)
        static_cast<void>(self->degraded_claims_.take(ours[i]->id));
    }
    part(std::move(answer));
  };
  auto their_part = joined_renewal::part(whole, std::move(their_places));
  local_->renew(ours, context, std::move(mark));
  if (theirs.empty()) return their_part(std::vector<spi::renewal>{});
  engine_->renew(std::move(theirs), context, std::move(their_part));
}

fallback_store::fallback_store(std::shared_ptr<spi::runtime> runtime,
                               std::shared_ptr<breaker_store> engine,
                               std::shared_ptr<spi::store> local)
    : forwarding_store(engine),
      office_(std::make_shared<office>(std::move(runtime), std::move(engine), std::move(local))) {
  office_->listen();
}

fallback_store::~fallback_store() = default;

void fallback_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                             const spi::op_context& context, spi::completion<spi::outcome> done) {
  office_->attempt(std::move(claim), std::move(wakeup), context, std::move(done));
}

void fallback_store::watch(spi::claim_ptr claim, const spi::blocked& seen,
                           const spi::op_context& context, spi::completion<spi::armed> done) {
  // Nobody who waits at the stand-in is turned away: asked again, it has its place.
  if (office_->here(claim->id)) return done(spi::armed::recheck);
  forwarding_store::watch(std::move(claim), seen, context, std::move(done));
}

void fallback_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                           spi::completion<spi::departure> done) {
  office_->leave(claim, context, std::move(done));
}

void fallback_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                           spi::completion<std::vector<spi::renewal>> done) {
  office_->renew(std::move(claims), context, std::move(done));
}

void fallback_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  office_->change(std::move(claim), to, context, std::move(done));
}

bool fallback_store::report_to(spi::reach_sink sink) {
  office_->report_to(std::move(sink));
  return true;
}

void fallback_store::close() noexcept {
  office_->close();
  forwarding_store::close();
}

}  // namespace holdfast::outage
