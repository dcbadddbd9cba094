// Asking, writing back, topping up. Leaving is in round_exit.cpp.
#include "stores/quorum/round.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::quorum {

using core::mutant;
using core::mutated;

// Receives what one member pushes. Pushes of freed and wanted mean nothing here: nobody queues.
class round::vote_listener final : public spi::wakeup {
 public:
  vote_listener(std::weak_ptr<round> of, std::size_t member)
      : of_(std::move(of)), member_(member) {}
  void notify(std::optional<spi::granted>) noexcept override {}
  void wanted() noexcept override {}
  void gone(const error& why) noexcept override {
    if (const auto alive = of_.lock()) alive->objected(member_, why);
  }

 private:
  const std::weak_ptr<round> of_;
  const std::size_t member_;
};

namespace {

spi::claim_ptr copy_for_members(const quorum_context& quorum_context, const spi::claim& claim,
                                const spi::claim_id& id) {
  auto copy = std::make_shared<spi::claim>(claim);
  copy->id = id;
  copy->queued = false;  // queues at the members would split the vote forever
  copy->fair = false;
  copy->proposed_fence = quorum_context.clocks.proposal(quorum_context.runtime->now());
  return copy;
}

}  // namespace

round::round(std::shared_ptr<quorum_context> quorum_context, const spi::claim& claim,
             const spi::claim_id& id, std::shared_ptr<spi::wakeup> holder)
    : context_(std::move(quorum_context)),
      copy_(copy_for_members(*context_, claim, id)),
      holder_(std::move(holder)),
      ballot_(context_->members.size()),
      revocation_votes_(context_->members.size()) {}

void round::start(const spi::op_context& context, spi::completion<spi::outcome> done) {
  const time_point now = context_->runtime->now();
  deadline_ = context.deadline;
  {
    const std::lock_guard lock(mutex_);
    done_ = std::move(done);
    last_sent_ = now;
  }
  for (std::size_t i = 0; i < context_->members.size(); ++i) {
    {
      const std::lock_guard lock(mutex_);
      if (!ballot_.ask(i)) continue;
    }
    ask(i, copy_, deadline_);
  }
  // A member that answers within the call may have done so before the silent ones were asked.
  ballot::orders todo;
  {
    const std::lock_guard lock(mutex_);
    hurry(todo);
  }
  carry_out(std::move(todo));
}

void round::ask(std::size_t member, const spi::claim_ptr& claim, time_point deadline) {
  const time_point sent_at = context_->runtime->now();
  context_->members[member].store->attempt(
      claim, std::make_shared<vote_listener>(weak_from_this(), member),
      context_->reaching(deadline, claim->ttl),
      [self = shared_from_this(), member, sent_at](const result<spi::outcome>& answer) {
        self->answered(member, sent_at, answer);
      });
}

void round::hurry(ballot::orders& todo) {
  std::vector<bool> doubtful(ballot_.members());
  bool any = false;
  for (std::size_t i = 0; i < doubtful.size(); ++i) {
    doubtful[i] = context_->doubts(i);
    any = any || doubtful[i];
  }
  if (any && !todo.settle) todo = ballot_.not_waiting_for(doubtful);
}

void round::answered(std::size_t member, time_point sent_at, const result<spi::outcome>& answer) {
  const time_point now = context_->runtime->now();
  if (answer) {
    std::visit([&](const auto& each) { context_->clocks.heard(member, now, each.at); }, *answer);
  }
  context_->heard(member, answer || answer.error() != errc::unavailable);
  ballot::orders todo;
  {
    const std::lock_guard lock(mutex_);
    if (ballot_.where() == ballot::phase::failed && answer) late_.emplace_back(member, *answer);
    todo = ballot_.answered(member, answer);
    if (answer && std::holds_alternative<spi::granted>(*answer))
      revocation_votes_.refute(member, sent_at);
    if (ballot_.duplicate()) context_->duplicate.store(true, std::memory_order_release);
    if (!answer && !answer.error().unsent)
      clean_ = false;  // it may arrive yet, or the member keeps a tombstone
    if (todo.raise.empty()) hurry(todo);
  }
  carry_out(std::move(todo));
}

void round::inherit(const round& earlier) {
  std::vector<ballot::orders> all;
  {
    const std::scoped_lock lock(mutex_, earlier.mutex_);
    for (const auto& [member, answer] : earlier.late_) {
      ballot_.ask(member);
      all.push_back(ballot_.answered(member, answer));
    }
  }
  for (auto& each : all) carry_out(std::move(each));
}

void round::carry_out(ballot::orders todo) {
  spi::completion<spi::outcome> done;
  std::vector<std::pair<std::size_t, bool>> leaving;
  {
    const std::lock_guard lock(mutex_);
    if (todo.settle && ballot_.where() == ballot::phase::granted) {
      done = std::move(done_);
      const duration ttl = std::get<spi::granted>(**todo.settle).ttl;
      valid_until_ = last_sent_ + ttl - margin_of(ttl);
    } else if (todo.settle) {
      verdict_ = std::move(todo.settle);
    }
    for (const std::size_t i : todo.leave) {
      const bool certain = sits_at(i);
      leaving.emplace_back(i, certain);
      if (certain) ++awaited_;
    }
    if (verdict_ && awaited_ == 0) {
      done = std::move(done_);
      todo.settle = std::exchange(verdict_, std::nullopt);
    }
  }
  for (const std::size_t i : todo.raise) send_raise(i);
  for (const auto& [i, certain] : leaving) withdraw(i, certain);
  if (!done) return;
  done(*std::move(todo.settle));
  heed();  // what was pushed before it was granted
}

// --- members' pushes -----------------------------------------------------------------------------

void round::objected(std::size_t member, const error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!revocation_votes_.raise(member, context_->runtime->now())) return;
    objection_ = why;
    look_again_ = true;
  }
  heed();
}

// If so many members said that they revoked it that no majority can be left, it is gone. Else all
// are asked. The round stays among the active ones: a caller that asks for the same claim again has
// to do so under another id.
void round::heed() {
  error why;
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    if (!holder_ || context_->closed.load(std::memory_order_acquire)) return;
    if (ballot_.where() != ballot::phase::granted || !revocation_votes_.any()) return;
    gone = revocation_votes_.decide() || mutated(mutant::quorum_push_believed);
    if (!gone && (looking_ || !std::exchange(look_again_, false))) return;
    looking_ = !gone;
    why = objection_;
  }
  if (gone) {
    forsake();
    return holder_->gone(why);
  }
  auto counted = [self = shared_from_this(), why](const renewal_round::answers& answers) {
    if (answers.front().state == spi::hold_state::lost) {
      self->abandon();
      return self->holder_->gone(why);
    }
    {
      const std::lock_guard lock(self->mutex_);
      self->looking_ = false;
    }
    self->heed();
  };
  std::make_shared<renewal_round>(context_, std::vector{shared_from_this()}, std::move(counted))
      ->start(context_->soon(time_point::max(), copy_->ttl));
}

bool round::sits_at(std::size_t member) const {
  return ballot_.at(member) == ballot::vote_state::held ||
         ballot_.at(member) == ballot::vote_state::low;
}

void round::send_raise(std::size_t member) {
  fence_token fence;
  time_point deadline = time_point::max();
  {
    const std::lock_guard lock(mutex_);
    fence = ballot_.fence();
    if (done_) deadline = deadline_;
  }
  context_->members[member].store->raise(
      copy_, fence, context_->soon(deadline, copy_->ttl),
      [self = shared_from_this(), member](const result<spi::granted>& answer) {
        self->raised(member, answer);
      });
}

void round::raised(std::size_t member, const result<spi::granted>& answer) {
  ballot::orders todo;
  {
    const std::lock_guard lock(mutex_);
    todo = ballot_.raised(member, answer);
  }
  carry_out(std::move(todo));
}

round::duty round::duty_at(std::size_t member) const {
  const std::lock_guard lock(mutex_);
  if (ballot_.where() != ballot::phase::granted) return duty::nothing;
  switch (ballot_.at(member)) {
    case ballot::vote_state::held:
      return duty::renew;
    case ballot::vote_state::low:
      return duty::raise;
    default:
      return duty::nothing;
  }
}

void round::top_up(const spi::op_context& context) {
  const time_point now = context_->runtime->now();
  std::vector<std::size_t> missing;
  {
    const std::lock_guard lock(mutex_);
    // A lease that is not renewed ends everywhere at its end time.
    if (now >= valid_until_ || !copy_->renewed) return;
    for (std::size_t i = 0; i < ballot_.members(); ++i) {
      if (ballot_.top_up(i)) missing.push_back(i);
    }
    if (missing.empty()) return;
    last_sent_ = now;
  }
  auto again = std::make_shared<spi::claim>(*copy_);
  again->proposed_fence = fence().value();
  for (const std::size_t i : missing) ask(i, again, context.deadline);
}

void round::renewed(std::size_t member, time_point sent_at, const spi::renewal& answer) {
  const std::lock_guard lock(mutex_);
  if (answer.state == spi::hold_state::renewed) revocation_votes_.refute(member, sent_at);
  // An answer that comes late says nothing about a member that was topped up since.
  if (answer.state == spi::hold_state::lost && sits_at(member)) ballot_.lose(member);
}

void round::renewing(time_point now) {
  const std::lock_guard lock(mutex_);
  last_sent_ = std::max(last_sent_, now);
}

void round::proven(time_point sent_at, duration ttl) {
  const std::lock_guard lock(mutex_);
  valid_until_ = std::max(valid_until_, sent_at + ttl - margin_of(ttl));
}

bool round::granted() const {
  const std::lock_guard lock(mutex_);
  return ballot_.where() == ballot::phase::granted;
}

fence_token round::fence() const {
  const std::lock_guard lock(mutex_);
  return ballot_.fence();
}

bool round::clean() const {
  const std::lock_guard lock(mutex_);
  return clean_;
}

}  // namespace holdfast::quorum
