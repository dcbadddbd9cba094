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

void sqlite_store::deliver(const effects& out, const spi::resource_id& on, time_point deadline) {
  if (peer_notifier_->deliver(out, deadline)) settle(key_of(on), deadline);
}

void sqlite_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  perform(claim.get(), context, std::move(done),
          [this, claim, wakeup = std::move(wakeup)](time_point deadline) {
            const std::int64_t place = local_claims_->enlist(claim, wakeup);
            return do_attempt(*claim, place, deadline);
          });
}

result<spi::outcome> sqlite_store::do_attempt(const spi::claim& claim, std::int64_t place,
                                              time_point deadline) {
  schedule_upkeep();
  result<spi::outcome> answer;
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    auto done = write(
        deadline, out, &claim.id,
        [&](ledger& book, const moment& step) { answer = book.attempt(step, claim, place); },
        [&](ledger& book, const moment& step) {
          const auto grant = book.take_at_once(step, claim, place);
          if (grant) answer = *grant;
          return grant.has_value();
        });
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

// Whoever would wait is queued here; who only tries may ask again.
void sqlite_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void sqlite_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  perform(claim.get(), context, std::move(done),
          [this, claim](time_point deadline) { return do_leave(*claim, deadline); });
}

result<spi::departure> sqlite_store::do_leave(const spi::claim& claim, time_point deadline) {
  // No client has a detached claim: it is looked for.
  const std::int64_t place = claim.detached ? ledgers::to_be_found : local_claims_->place(claim.id);
  if (place == ledgers::nowhere || (broken() && !claim.detached)) {
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
      [&](ledger& book, const moment& step) { answer = book.leave(step, claim, place); },
      [&](ledger& book, const moment& step) {
        const auto left = book.give_at_once(step, claim, place);
        if (left) answer = *left;
        return left.has_value();
      });
  if (!done) {
    local_claims_->owe(claim.id);
    return tl::unexpected(std::move(done.error()));
  }
  local_claims_->strike(claim.id);
  deliver(out, claim.resource, deadline);
  return answer;
}

// An error means that nothing has happened: `to` is known here only if it holds.
void sqlite_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                            std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  const auto verb = [this, from, to,
                     wakeup = std::move(wakeup)](time_point deadline) -> result<spi::granted> {
    schedule_upkeep();
    effects out;
    result<spi::granted> answer;
    std::int64_t place = ledgers::nowhere;
    if (wakeup) local_claims_->enlist(to, wakeup);
    auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      answer = book.transfer(step, from, *to, place);
    });
    if (!written) {
      if (local_claims_->place(to->id) == ledgers::nowhere) local_claims_->strike(to->id);
      return tl::unexpected(std::move(written.error()));
    }
    if (from != to->id) local_claims_->strike(from);
    if (answer) {
      local_claims_->set_held_place(to->id, place);
    } else {
      local_claims_->strike(to->id);
    }
    deliver(out, to->resource, deadline);
    return answer;
  };
  perform(to.get(), context, std::move(done), verb);
}

void sqlite_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  perform(nullptr, context, std::move(done),
          [this, claims = std::move(claims)](time_point deadline) {
            return do_renew(claims, deadline);
          });
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

void sqlite_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  const auto verb = [this, claim, to](time_point deadline) {
    result<spi::granted> answer;
    for (int round = 0; round < purge_rounds; ++round) {
      effects out;
      auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
        answer = book.change(step, *claim, local_claims_->place(claim->id), to);
      });
      if (!written) return result<spi::granted>(tl::unexpected(std::move(written.error())));
      deliver(out, claim->resource, deadline);
      // Refused because others hold: unless they are dead.
      if (answer || !peer_notifier_->any_dead(out.blockers, deadline)) break;
    }
    return answer;
  };
  perform(claim.get(), context, std::move(done), verb);
}

void sqlite_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  const auto verb = [this, resource, how,
                     claim](time_point deadline) -> result<std::vector<spi::holder>> {
    effects out;
    std::vector<spi::holder> taken;
    auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      taken = book.revoke(step, resource, how, claim);
    });
    if (!written) return tl::unexpected(std::move(written.error()));
    deliver(out, resource, deadline);
    return taken;
  };
  perform(nullptr, context, std::move(done), verb);
}

}  // namespace holdfast::sqlite
