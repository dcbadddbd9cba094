// The verbs of a claim: a transaction, then what it causes. Where that shows that somebody is dead,
// another transaction, in the same call.
#include "stores/sqlite/sqlite_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

// How often one call may find further dead ones.
constexpr int purge_rounds = 64;

}  // namespace

moment sqlite_store::step_of(effects& out, const std::set<std::int64_t>& dead,
                             const spi::claim_id* claim) const {
  return {.now = now(), .out = out, .self = self_.number, .claim = claim, .dead = &dead};
}

template <class Work>
result<void> sqlite_store::write(time_point deadline, effects& out, const spi::claim_id* claim,
                                 Work&& work) {
  return write(
      deadline, out, claim, [](ledger&, const moment&) { return false; }, work);
}

template <class AtOnce, class Work>
result<void> sqlite_store::write(time_point deadline, effects& out, const spi::claim_id* claim,
                                 AtOnce&& at_once, Work&& work) {
  const auto dead = peer_notifier_->dead();
  const auto now_or_later = [&](auto& step_by) {
    return [&](ledger& book) { return step_by(book, step_of(out, *dead, claim)); };
  };
  auto done = session_->write(deadline, now_or_later(at_once), now_or_later(work));
  if (!done) {
    out = {};
    if (auto fine = session_->in_place(); !fine) mark_broken(fine.error());
  }
  return done;
}

// Until nobody dead is in the way of the next.
void sqlite_store::settle(const std::string& key, time_point deadline) {
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    const auto done = write(deadline, out, nullptr,
                            [&](ledger& book, const moment& step) { book.settle(step, key); });
    // Not fatal: the next who looks goes on.
    if (!done || !peer_notifier_->deliver(out, deadline)) return;
  }
}

result<spi::outcome> sqlite_store::do_attempt(const spi::claim& claim, std::int64_t place,
                                              time_point deadline) {
  schedule_upkeep();
  result<spi::outcome> answer;
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    auto done = write(
        deadline, out, &claim.id,
        [&](ledger& book, const moment& step) {
          const auto grant = book.take_at_once(step, claim, place);
          if (grant) answer = *grant;
          return grant.has_value();
        },
        [&](ledger& book, const moment& step) { answer = book.attempt(step, claim, place); });
    if (!done) return tl::unexpected(std::move(done.error()));
    const auto* blocked = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
    if (answer && blocked == nullptr) {
      local_claims_->set_held_place(claim.id, place);
    } else {
      local_claims_->set_place(claim.id, place);
    }
    const bool found_dead = peer_notifier_->deliver(out, deadline);
    if (!answer) {
      local_claims_->strike(claim.id);
      return answer;
    }
    if (blocked == nullptr) {
      if (found_dead) settle(key_of(claim.resource), deadline);
      return answer;
    }
    const bool blocker_dead = blocked->queued
                                  ? peer_notifier_->watch(claim.id, out.blockers, deadline)
                                  : peer_notifier_->any_dead(out.blockers, deadline);
    if (!found_dead && !blocker_dead) break;
  }
  if (!std::get<spi::blocked>(*answer).queued) local_claims_->strike(claim.id);
  return answer;
}

result<spi::departure> sqlite_store::do_leave(const spi::claim& claim, time_point deadline) {
  if (claim.detached) return leave_detached(claim, deadline);
  const std::int64_t place = local_claims_->place(claim.id);
  if (place == 0 || broken()) {
    local_claims_->strike(claim.id);
    return spi::departure::gone;
  }
  if (deadline <= clock::now() && local_claims_->ends_by_time(claim.id)) {
    local_claims_->strike(claim.id);
    return failure(errc::unavailable, "sqlite, no time left");
  }
  effects out;
  spi::departure answer = spi::departure::gone;
  auto done = write(
      deadline, out, nullptr,
      [&](ledger& book, const moment& step) {
        const auto left = book.give_at_once(step, claim, place);
        if (left) answer = *left;
        return left.has_value();
      },
      [&](ledger& book, const moment& step) { answer = book.leave(step, claim, place); });
  if (!done) {
    local_claims_->owe(claim.id);
    return tl::unexpected(std::move(done.error()));
  }
  local_claims_->strike(claim.id);
  if (peer_notifier_->deliver(out, deadline)) settle(key_of(claim.resource), deadline);
  return answer;
}

// No client has it: it is looked for.
result<spi::departure> sqlite_store::leave_detached(const spi::claim& claim, time_point deadline) {
  effects out;
  spi::departure answer = spi::departure::gone;
  auto done = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
    answer = book.leave(step, claim, ledgers::to_be_found);
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  if (peer_notifier_->deliver(out, deadline)) settle(key_of(claim.resource), deadline);
  return answer;
}

// An error means that nothing has happened: `to` is known here only if it holds.
result<spi::granted> sqlite_store::do_transfer(const spi::claim_id& from, const spi::claim_ptr& to,
                                               const std::shared_ptr<spi::wakeup>& wakeup,
                                               time_point deadline) {
  schedule_upkeep();
  effects out;
  result<spi::granted> answer;
  std::int64_t place = 0;
  if (wakeup) local_claims_->enlist(to, wakeup);
  auto done = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
    answer = book.transfer(step, from, *to, place);
  });
  if (!done) {
    if (local_claims_->place(to->id) == 0) local_claims_->strike(to->id);
    return tl::unexpected(std::move(done.error()));
  }
  if (from != to->id) local_claims_->strike(from);
  if (answer) {
    local_claims_->set_held_place(to->id, place);
  } else {
    local_claims_->strike(to->id);
  }
  if (peer_notifier_->deliver(out, deadline)) settle(key_of(to->resource), deadline);
  return answer;
}

// What was handed over is held for certain only now.
result<void> sqlite_store::take_up(const std::vector<spi::claim_ptr>& claims,
                                   std::vector<spi::renewal>& answers, time_point deadline) {
  const auto offered = [](const spi::renewal& each) { return each.grant.offer; };
  if (std::ranges::none_of(answers, offered)) return {};
  effects out;
  auto done = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
    for (std::size_t i = 0; i < claims.size(); ++i) {
      if (!answers[i].grant.offer) continue;
      const auto grant = book.take_up(step, *claims[i], local_claims_->place(claims[i]->id));
      if (grant) {
        answers[i].grant = *grant;
      } else {
        answers[i].state = spi::hold_state::lost;
      }
    }
  });
  if (done) peer_notifier_->deliver(out, deadline);
  return done;
}

// Holders only look: they hold as long as they live. A waiter asks again, which also finds a grant
// whose message was lost and blockers whose death nobody noticed; but not one in the middle of a line
// that nobody can come in from, or thousands would write every second.
result<std::vector<spi::renewal>> sqlite_store::do_renew(const std::vector<spi::claim_ptr>& claims,
                                                         time_point deadline) {
  std::vector<spi::renewal> answers(claims.size());
  std::vector<std::optional<std::int64_t>> behind(claims.size());
  effects out;
  const auto dead = peer_notifier_->dead();
  auto done = session_->in_place();
  if (done) {
    done = session_->read(deadline, [&](ledger& book) {
      const moment step = step_of(out, *dead);
      for (std::size_t i = 0; i < claims.size(); ++i) {
        answers[i] = book.look(step, *claims[i], local_claims_->place(claims[i]->id), behind[i]);
      }
    });
  }
  if (!done) {
    if (auto fine = session_->in_place(); !fine) mark_broken(fine.error());
    return tl::unexpected(std::move(done.error()));
  }
  peer_notifier_->deliver(out, deadline);
  if (auto taken = take_up(claims, answers, deadline); !taken) {
    return tl::unexpected(std::move(taken.error()));
  }
  const auto waits = [](const spi::renewal& each) {
    return each.state == spi::hold_state::waiting;
  };
  if (std::ranges::any_of(answers, waits)) life_->speak(now());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    spi::renewal& each = answers[i];
    if (each.state == spi::hold_state::lost) local_claims_->strike(claims[i]->id);
    if (each.state != spi::hold_state::waiting) continue;
    if (behind[i] && !peer_notifier_->watch(claims[i]->id, {*behind[i]}, deadline)) continue;
    const auto asked = do_attempt(*claims[i], local_claims_->place(claims[i]->id), deadline);
    if (!asked) {
      each.state = spi::hold_state::unknown;
    } else if (const auto* grant = std::get_if<spi::granted>(&*asked)) {
      each.state = claims[i]->renewed ? spi::hold_state::renewed : spi::hold_state::held;
      each.grant = *grant;
      each.at = grant->at;
    } else {
      each.recheck_after = std::get<spi::blocked>(*asked).recheck_after;
      each.at = std::get<spi::blocked>(*asked).at;
    }
  }
  return answers;
}

result<spi::granted> sqlite_store::do_change(const spi::claim& claim, spi::mode to,
                                             time_point deadline) {
  result<spi::granted> answer;
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    auto done = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      answer = book.change(step, claim, local_claims_->place(claim.id), to);
    });
    if (!done) return tl::unexpected(std::move(done.error()));
    const bool found_dead = peer_notifier_->deliver(out, deadline);
    if (answer) {
      if (found_dead) settle(key_of(claim.resource), deadline);
      return answer;
    }
    // Refused because others hold: unless they are dead.
    if (!peer_notifier_->any_dead(out.blockers, deadline)) return answer;
  }
  return answer;
}

result<std::vector<spi::holder>> sqlite_store::do_revoke(const spi::resource_id& resource,
                                                         spi::revocation how,
                                                         const std::string& claim,
                                                         time_point deadline) {
  std::vector<spi::holder> taken;
  effects out;
  auto done = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
    taken = book.revoke(step, resource, how, claim);
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  if (peer_notifier_->deliver(out, deadline)) settle(key_of(resource), deadline);
  return taken;
}

// What the store looks after by itself, once a second while it has claims or listeners: that the
// files are still its own, releases that found no answer, and latch changes that may have been
// missed. Nothing here is needed to be in time; it bounds what is lost.

namespace {

constexpr duration upkeep_interval = std::chrono::seconds(1);
constexpr duration repay_limit = std::chrono::seconds(5);

}  // namespace

void sqlite_store::schedule_upkeep() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || std::exchange(upkeep_scheduled_, true)) return;
  }
  reactor_->at(reactor_->now() + upkeep_interval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_up();
  });
}

// On the reactor's thread: looks at files, runs no transaction.
void sqlite_store::keep_up() {
  if (!begin_verb()) return;
  {
    const std::lock_guard lock(mutex_);
    upkeep_scheduled_ = false;
  }
  if (!broken() && (!local_claims_->empty() || !subscribers_->empty())) {
    look_after();
    schedule_upkeep();
  }
  end_verb();
}

void sqlite_store::look_after() {
  auto fine = session_->in_place();
  if (fine && life_->deleted()) {
    fine = failure(errc::unavailable,
                   "sqlite, " + folder_->path() + " was deleted while in use: its locks are lost");
  }
  if (!fine) return mark_broken(fine.error());
  subscribers_->tell_all_latches();
  if (!local_claims_->owed().empty()) {
    worker_->post(
        clock::now() + repay_limit,
        [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->repay();
        },
        [] {});
  }
}

bool sqlite_store::broken() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

// Whoever opens the path from now on sees none of our claims.
void sqlite_store::mark_broken(const error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(broken_, true)) return;
  }
  const error lost{errc::lost, why.detail};
  for (const spi::claim_ptr& claim : local_claims_->claims()) {
    const auto wakeup = local_claims_->find(claim->id);
    local_claims_->strike(claim->id);
    if (wakeup) wakeup->gone(lost);
  }
}

void sqlite_store::repay() {
  if (!begin_verb()) return;
  for (const spi::claim_ptr& claim : local_claims_->owed()) {
    if (!do_leave(*claim, clock::now() + repay_limit)) break;
  }
  end_verb();
}

}  // namespace holdfast::sqlite
