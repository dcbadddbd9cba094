#include "stores/etcd/lease_keeper.hpp"

#include <utility>

namespace holdfast::etcd {

// Awaited by a flow that needs the lease's id. If there is none, the grant or its deadline resumes it.
struct lease_keeper::waiting {
  lease_keeper& keeper;
  net::patience until;
  std::shared_ptr<waiter> who = std::make_shared<waiter>();

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> then) {
    who->then = then;
    return keeper.wait(who, until);
  }
  result<std::int64_t> await_resume() { return std::move(who->answer); }
  // It failed because another waiter's time was over.
  [[nodiscard]] bool may_ask_again(const result<std::int64_t>& answer, time_point now) const {
    return !answer && answer.error() == errc::unavailable && !who->grants && now < until.deadline;
  }
};

lease_keeper::lease_keeper(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
                           duration wanted, std::weak_ptr<lease_user> user)
    : reactor_(std::move(reactor)), way_(std::move(way)), wanted_(wanted), user_(std::move(user)) {}

task<result<std::int64_t>> lease_keeper::ready(std::shared_ptr<lease_keeper> self,
                                               net::patience until) {
  for (;;) {
    // Named: GCC 12 destroys a temporary's members twice.
    waiting granted{*self, until};
    const result<std::int64_t> answer = co_await granted;
    if (!granted.may_ask_again(answer, self->reactor_->now())) co_return answer;
  }
}

// Its arguments are its own: as soon as the mutex is free, another thread may answer the caller, which
// destroys what it passed.
bool lease_keeper::wait(std::shared_ptr<waiter> who, net::patience until) {
  const auto self = shared_from_this();
  {
    const std::scoped_lock lock(mutex_);
    if (id_ != 0) {
      who->answer = id_;
      return false;
    }
    waiters_.push_back(who);
    who->grants = !std::exchange(granting_, true);
  }
  if (who->grants) {
    grant(self, until);  // answers by the same deadline, with the cause
    return true;
  }
  reactor_->at(until.deadline, [weak = weak_from_this(), who = std::move(who)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    {
      const std::scoped_lock lock(alive->mutex_);
      if (std::exchange(who->over, true)) return;
      std::erase(alive->waiters_, who);
    }
    who->then.resume();
  });
  return true;
}

flow lease_keeper::grant(std::shared_ptr<lease_keeper> self, net::patience until) {
  constexpr duration second = std::chrono::seconds(1);
  const std::int64_t seconds = (self->wanted_ + second - duration{1}) / second;
  call asks = lease_grant_call(seconds);
  const result<reply> answer = co_await ask_one(self->way_, asks, "grant", "a lease", until);
  if (!answer) {
    self->finish(tl::unexpected(answer.error()));
    co_return;
  }
  const auto lease = read_lease(answer->body);
  if (!lease || lease->id == 0 || lease->seconds <= 0) {
    const std::string why = lease ? lease->error : lease.error().detail;
    self->finish(failure(errc::unavailable, "etcd: no lease: " + why));
    co_return;
  }
  {
    const std::scoped_lock lock(self->mutex_);
    self->id_ = lease->id;
    self->time_ = std::chrono::seconds(lease->seconds);
    self->proof_.begin(answer->sent, self->time_);
  }
  self->finish(lease->id);
}

void lease_keeper::finish(const result<std::int64_t>& outcome) {
  std::vector<std::shared_ptr<waiter>> those;
  {
    const std::scoped_lock lock(mutex_);
    granting_ = false;
    those = std::exchange(waiters_, {});
    for (const auto& each : those) each->over = true;
  }
  for (const auto& each : those) {
    each->answer = outcome;
    each->then.resume();
  }
}

task<replies> lease_keeper::ask(std::shared_ptr<lease_keeper> self, std::int64_t id,
                                std::vector<call> calls, renews how, net::patience until,
                                lease_note& found) {
  bool keeps = how == renews::always;
  {
    const std::scoped_lock lock(self->mutex_);
    keeps = keeps || self->proof_.date() + self->time_ / 6 < self->reactor_->now();
  }
  if (!keeps) co_return co_await asking(self->way_, std::move(calls), until);
  calls.push_back(lease_call(method::lease_keep_alive, id));
  for (int round = 0;; ++round) {
    std::vector<call> batch = calls;
    replies answers = co_await asking(self->way_, std::move(batch), until);
    const result<reply> keepalive = std::move(answers.back());
    answers.pop_back();
    self->take_keepalive(id, keepalive, answers, found);
    // The first answers of a member prove nothing, the next ones may. Renewals only read.
    const bool unproven = keepalive && keepalive->ok() && keepalive->term_before == 0;
    if (how != renews::always || round > 0 || !unproven) co_return answers;
  }
}

void lease_keeper::take_keepalive(std::int64_t id, const result<reply>& keepalive,
                                  const replies& others, lease_note& found) {
  if (!keepalive || !keepalive->ok()) return;
  const auto lease = read_lease(keepalive->body);
  if (!lease || lease->id != id) return;
  if (lease->seconds <= 0) return ended(id);
  for (const result<reply>& each : others) {
    if (!each || !each->ok()) return;
    found.evidence = {std::min(keepalive->term_before, each->term_before), keepalive->header.term,
                      each->header.term, each->connection == keepalive->connection};
    if (!found.evidence.holds()) return;
  }
  found.lease = id;
  found.sent = keepalive->sent;
  found.time = std::chrono::seconds(lease->seconds);
}

void lease_keeper::accept(const lease_note& found) {
  const std::scoped_lock lock(mutex_);
  if (found.lease != 0 && found.lease == id_) proof_.add(found.evidence, found.sent, found.time);
}

void lease_keeper::ended(std::int64_t id) {
  {
    const std::scoped_lock lock(mutex_);
    if (id_ != id || id == 0) return;
    id_ = 0;
    proof_.forget();
  }
  if (const auto user = user_.lock()) user->lease_ended(id);
}

duration lease_keeper::time() const {
  const std::scoped_lock lock(mutex_);
  return time_;
}

time_point lease_keeper::proven_until(std::int64_t id) const {
  const std::scoped_lock lock(mutex_);
  return id != id_ || id == 0 ? time_point::min() : proof_.until();
}

time_point lease_keeper::proven_at(std::int64_t id) const {
  const std::scoped_lock lock(mutex_);
  return id != id_ || id == 0 ? time_point::min() : proof_.date();
}

std::int64_t lease_keeper::id() const {
  const std::scoped_lock lock(mutex_);
  return id_;
}

}  // namespace holdfast::etcd
