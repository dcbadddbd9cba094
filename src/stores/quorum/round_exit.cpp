// How a round leaves its members: at once if it failed, on behalf of the core if it was released.
#include "stores/quorum/round.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::quorum {

namespace {

// Leaves a claim at one member in the background: repeatedly, until it is answered or nothing of it
// can be left there. Late grants of a failed round end this way.
//
// Keeps itself alive by the timer or the request that it waits for; the quorum may end before it.
class withdrawal : public std::enable_shared_from_this<withdrawal> {
 public:
  withdrawal(const std::shared_ptr<quorum_context>& quorum_context, std::size_t member,
             spi::claim_ptr claim, time_point until)
      : context_(quorum_context),
        member_(member),
        claim_(std::move(claim)),
        until_(until),
        pause_(quorum_context->limit.first_pause) {
    quorum_context->withdrawals.fetch_add(1, std::memory_order_relaxed);
  }
  ~withdrawal() {
    if (const auto alive = context_.lock()) {
      alive->withdrawals.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  withdrawal(const withdrawal&) = delete;
  withdrawal& operator=(const withdrawal&) = delete;

  void wait() {
    const auto quorum_context = context_.lock();
    if (!quorum_context || quorum_context->closed.load(std::memory_order_acquire)) return;
    const time_point now = quorum_context->runtime->now();
    if (now >= until_) return;
    const duration pause =
        std::exchange(pause_, std::min(pause_ * 2, quorum_context->limit.longest_pause));
    quorum_context->runtime->at(now + pause, [self = shared_from_this()] { self->send(); });
  }

 private:
  void send() {
    const auto quorum_context = context_.lock();
    if (!quorum_context || quorum_context->closed.load(std::memory_order_acquire)) return;
    spi::op_context context = quorum_context->soon(time_point::max(), claim_->ttl);
    context.unanswered = true;
    quorum_context->members[member_].store->leave(
        claim_, context, [self = shared_from_this()](const result<spi::departure>& answer) {
          if (!answer && answer.error() == errc::unavailable) self->wait();
        });
  }

  const std::weak_ptr<quorum_context> context_;
  const std::size_t member_;
  const spi::claim_ptr claim_;
  const time_point until_;
  duration pause_;
};

// Begins after a pause: its caller has just tried once, without an answer. Ends when answered, at
// `until`, when the store is closed, or at once if too many are under way.
void withdraw_later(const std::shared_ptr<quorum_context>& quorum_context, std::size_t member,
                    spi::claim_ptr claim, time_point until) {
  if (quorum_context->withdrawals.load(std::memory_order_relaxed) >=
      quorum_context->limit.withdrawals)
    return;
  std::make_shared<withdrawal>(quorum_context, member, std::move(claim), until)->wait();
}

}  // namespace

time_point round::end_of_all() const { return last_sent_ + copy_->ttl + margin_of(copy_->ttl); }

time_point round::over_at() const {
  const std::lock_guard lock(mutex_);
  return std::max(end_of_all(), valid_until_);
}

// --- a failed round ----------------------------------------------------------------------------

// If the claim is certainly there, the round waits for this answer before giving its own: a try
// whose process ends right afterwards leaves nothing behind.
void round::withdraw(std::size_t member, bool certain) {
  spi::op_context context = context_->soon(time_point::max(), copy_->ttl);
  context.unanswered = !certain;
  if (!certain) {
    const std::lock_guard lock(mutex_);
    clean_ = false;
  }
  context_->members[member].store->leave(
      copy_, context,
      [self = shared_from_this(), member, certain](const result<spi::departure>& answer) {
        self->withdrawn(member, certain, answer);
      });
}

void round::withdrawn(std::size_t member, bool certain, const result<spi::departure>& answer) {
  spi::completion<spi::outcome> done;
  std::optional<result<spi::outcome>> verdict;
  time_point until;
  {
    const std::lock_guard lock(mutex_);
    if (!answer) clean_ = false;
    until = end_of_all();
    if (certain && --awaited_ == 0 && verdict_) {
      done = std::move(done_);
      verdict = std::exchange(verdict_, std::nullopt);
    }
  }
  if (!answer && answer.error() == errc::unavailable) {
    withdraw_later(context_, member, copy_, until);
  }
  if (done) done(*std::move(verdict));
}

// --- a release ---------------------------------------------------------------------------------

void round::leave(const spi::op_context& context, spi::completion<spi::departure> done) {
  std::vector<std::pair<std::size_t, bool>> asked;
  spi::completion<spi::outcome> attempt;
  {
    const std::lock_guard lock(mutex_);
    const ballot::orders todo = ballot_.end({errc::unavailable, "left while it was asked for"});
    attempt = std::move(done_);
    verdict_.reset();
    if (!exit_.begun) {
      exit_.begun = true;
      exit_.remaining = todo.leave;
      exit_.enough = std::min(todo.leave.size(), majority_of(ballot_.members()));
    }
    for (const std::size_t i : exit_.remaining) {
      asked.emplace_back(i, context.unanswered || !sits_at(i));
    }
    exit_.pending = asked.size();
    if (!asked.empty()) exit_.done = std::exchange(done, nullptr);
  }
  if (attempt) attempt(failure(errc::unavailable, "left while it was asked for"));
  if (done) return done(spi::departure::gone);
  for (const auto& [i, unanswered] : asked) send_leave(i, unanswered, context.deadline);
}

void round::send_leave(std::size_t member, bool unanswered, time_point deadline) {
  spi::op_context context = context_->soon(deadline, copy_->ttl);
  context.unanswered = unanswered;
  context_->members[member].store->leave(
      copy_, context, [self = shared_from_this(), member](const result<spi::departure>& answer) {
        self->left(member, answer);
      });
}

void round::left(std::size_t member, const result<spi::departure>& answer) {
  spi::completion<spi::departure> done;
  std::optional<spi::departure> verdict;
  std::vector<std::size_t> silent;
  {
    const std::lock_guard lock(mutex_);
    --exit_.pending;
    if (!answer && answer.error() == errc::unavailable) {
      exit_.silent.push_back(member);
    } else {
      std::erase(exit_.remaining, member);
      const bool held = answer && *answer == spi::departure::was_holder;
      ++(held ? exit_.holders : exit_.gone);
    }
    if (exit_.done) verdict = exit_verdict();
    if (exit_.done && (verdict || exit_.pending == 0)) {
      done = std::move(exit_.done);
      exit_.answered = verdict.has_value();
      if (!verdict) exit_.silent.clear();  // the core repeats it
    }
    if (exit_.answered) silent = std::exchange(exit_.silent, {});
  }
  background(silent);
  if (!done) return;
  if (verdict) {
    done(*verdict);
  } else {
    done(failure(errc::unavailable, "quorum: a majority did not answer"));
  }
}

// A majority no longer has it; what the rest still has keeps nobody out.
std::optional<spi::departure> round::exit_verdict() const {
  const std::size_t majority = majority_of(ballot_.members());
  const std::size_t free = ballot_.members() - exit_.remaining.size();
  const bool heard = exit_.holders + exit_.gone >= exit_.enough || exit_.pending == 0;
  if (!heard || free < majority) return std::nullopt;
  if (exit_.forsaken) {
    // After a forced revocation it may still be at a minority that has not heard of it yet.
    const bool open = exit_.holders < majority && exit_.gone + majority <= ballot_.members();
    if (open && exit_.pending > 0) return std::nullopt;
    return exit_.holders >= majority ? spi::departure::was_holder : spi::departure::gone;
  }
  return exit_.holders > 0 && exit_.holders >= exit_.gone ? spi::departure::was_holder
                                                          : spi::departure::gone;
}

void round::abandon() {
  // To the members a leave is a release, but after an abnormal end the lock must stay blocked.
  if (copy_->lock_delay > duration{0}) return forsake();
  ballot::orders todo;
  {
    const std::lock_guard lock(mutex_);
    todo = ballot_.end({errc::lost, "lost"});
    exit_.begun = true;
    clean_ = false;  // nobody waits for these leaves: one may come late
  }
  carry_out(std::move(todo));
}

// What the members still have is left only if its holder releases it after being notified.
void round::forsake() {
  const std::lock_guard lock(mutex_);
  const ballot::orders todo = ballot_.end({errc::lost, "lost"});
  if (!std::exchange(exit_.begun, true)) {
    exit_.remaining = todo.leave;
    exit_.enough = std::min(todo.leave.size(), majority_of(ballot_.members()));
    exit_.forsaken = true;
  }
  clean_ = false;  // it is still there
}

void round::background(const std::vector<std::size_t>& members) {
  if (members.empty()) return;
  time_point until;
  {
    const std::lock_guard lock(mutex_);
    until = end_of_all();
  }
  for (const std::size_t i : members) withdraw_later(context_, i, copy_, until);
}

}  // namespace holdfast::quorum
