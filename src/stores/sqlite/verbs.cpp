// The verbs: a transaction, then its effects. If these show that somebody is dead, another
// transaction, in the same call.
#include "stores/sqlite/sqlite_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

// How often one call may find more dead clients.
constexpr int purge_rounds = 64;
// For what is registered on the caller's thread, whichever that is.
constexpr duration registering_limit = std::chrono::seconds(1);

std::optional<duration> blocked_for(const contents& of, spi::server_time at) {
  return of.blocked_until > at ? std::optional(of.blocked_until - at) : std::nullopt;
}

}  // namespace

moment sqlite_store::step_of(effects& out, const std::set<std::int64_t>& dead,
                             const spi::claim_id* claim) const {
  return {.now = now(), .out = out, .self = self_.number, .claim = claim, .dead = &dead};
}

// Until no dead client blocks the next.
void sqlite_store::settle(const std::string& key, time_point deadline) {
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    const auto done = write(deadline, out, nullptr,
                            [&](ledger& book, const moment& step) { book.settle(step, key); });
    // Not fatal: the next look continues.
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
                                              time_point deadline, asks how) {
  schedule_upkeep();
  result<spi::outcome> answer;
  for (int round = 0; round < purge_rounds; ++round) {
    effects out;
    auto done = write(
        deadline, out, &claim.id,
        [&](ledger& book, const moment& step) {
          if (how == asks::again && !book.has(step, claim, place)) {
            answer = failure(errc::lost, "left meanwhile");
          } else {
            answer = book.attempt(with_place(step, place), claim);
          }
        },
        [&](ledger& book, const moment& step) {
          if (how == asks::again) return false;
          const auto grant = book.fast_attempt(step, claim, place);
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

// Waiters are queued here; a try may ask again.
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
  // No client keeps a detached claim: it must be searched for.
  std::int64_t place = claim.detached ? ledgers::to_be_found : local_claims_->place(claim.id);
  if (place == ledgers::nowhere || (!intact() && !claim.detached)) {
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
        answer = book.leave(with_place(step, place), claim);
      },
      [&](ledger& book, const moment& step) {
        const auto left = book.fast_leave(step, claim, place);
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
    std::int64_t place = ledgers::to_be_found;
    if (wakeup) local_claims_->enlist(to, wakeup);
    auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      answer = book.transfer(with_place(step, place), from, *to);
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
// whose message was lost and blockers whose death nobody noticed; except in the middle of a queue
// from where it cannot be granted, or thousands would write every second.
result<std::vector<spi::renewal>> sqlite_store::do_renew(const std::vector<spi::claim_ptr>& claims,
                                                         time_point deadline) {
  std::vector<spi::renewal> answers(claims.size());
  std::vector<std::optional<std::int64_t>> behind(claims.size());
  effects out;
  auto done = read(deadline, out, [&](ledger& book, const moment& step) {
    for (std::size_t i = 0; i < claims.size(); ++i) {
      answers[i] = book.look(step, *claims[i], local_claims_->place(claims[i]->id), behind[i]);
    }
  });
  if (!done) return tl::unexpected(std::move(done.error()));
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
    // It may have been granted and released since it was looked at.
    const auto asked =
        do_attempt(*claims[i], local_claims_->place(claims[i]->id), deadline, asks::again);
    if (!asked) {
      const bool gone = asked.error() == errc::lost;
      each.state = gone ? spi::hold_state::lost : spi::hold_state::unknown;
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

// A claim that was handed over is held for certain only from now on.
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
      std::int64_t place = local_claims_->place(claim->id);
      auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
        answer = book.change(with_place(step, place), *claim, to);
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

// --- inspection, latches, and listeners ----------------------------------------------------------

// Only looks: dead clients, and expired claims, are removed by those that want the lock. It
// is blocked by what is stored, and by what will be stored when somebody removes the
// claims that ended abnormally.
void sqlite_store::leave_out_dead(contents& of, time_point deadline) {
  std::set<std::int64_t> clients;
  for (const auto* rows : {&of.holders, &of.line}) {
    for (const claim_row& row : *rows) clients.insert(row.process);
  }
  peer_notifier_->any_dead({clients.begin(), clients.end()}, deadline);
  const auto dead = peer_notifier_->dead();
  const spi::server_time at = now();
  ledgers::resource sum;
  sum.blocked_until = of.blocked_until;
  const auto over = [&](const claim_row& row) {
    return row.ends <= at || dead->contains(row.process);
  };
  for (const claim_row& row : of.holders) {
    if (over(row)) sum.block(row.lock_delay, dead->contains(row.process) ? at : row.ends);
  }
  of.blocked_until = sum.blocked_until;
  std::erase_if(of.holders, over);
  std::erase_if(of.line, over);
}

void sqlite_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  const auto verb = [this, resource](time_point deadline) -> result<spi::resource_state> {
    effects out;
    contents found;
    auto looked =
        read(deadline, out, [&](ledger& book, const moment&) { found = book.look_at(resource); });
    if (!looked) return tl::unexpected(std::move(looked.error()));
    leave_out_dead(found, deadline);
    std::ranges::sort(found.holders, {}, &claim_row::fence);
    const spi::server_time at = now();
    spi::resource_state state;
    state.blocked_for = blocked_for(found, at);
    for (const claim_row& row : found.holders) {
      spi::holder holder = ledgers::described_holder(row, at);
      const auto who = row.process != nobody ? peer_notifier_->address(row.process) : std::nullopt;
      if (who) holder.kept_by = heir_of(*folder_, who->token).value_or("");
      state.holders.push_back(std::move(holder));
    }
    for (const claim_row& row : found.line) {
      state.waiters.push_back(ledgers::described_waiter(row, at));
    }
    return state;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::list(const std::string& space, const std::string& prefix,
                        const spi::op_context& context,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  const auto verb = [this, space,
                     prefix](time_point deadline) -> result<std::vector<spi::resource_summary>> {
    effects out;
    std::vector<contents> all;
    auto looked = read(deadline, out,
                       [&](ledger& book, const moment&) { all = book.look_at_all(space, prefix); });
    if (!looked) return tl::unexpected(std::move(looked.error()));
    std::vector<spi::resource_summary> summaries;
    for (contents& each : all) {
      leave_out_dead(each, deadline);
      const auto blocked = blocked_for(each, now());
      if (each.holders.empty() && each.line.empty() && !blocked) continue;
      summaries.push_back({each.name, each.holders.size(), each.line.size(), blocked});
    }
    return summaries;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  const auto verb = [this, resource, change](time_point deadline) {
    effects out;
    result<spi::latch_state> answer;
    auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      answer = book.change_latch(step, resource, change);
    });
    if (!written) return result<spi::latch_state>(tl::unexpected(std::move(written.error())));
    peer_notifier_->deliver(out, deadline);
    return answer;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  const auto verb = [this, resource](time_point deadline) {
    effects out;
    result<spi::latch_state> answer;
    auto looked = read(deadline, out, [&](ledger& book, const moment& step) {
      answer = book.read_latch(step, resource);
    });
    if (!looked) return result<spi::latch_state>(tl::unexpected(std::move(looked.error())));
    return answer;
  };
  perform(nullptr, context, std::move(done), verb);
}

result<std::unique_ptr<spi::subscription>> sqlite_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  const std::string key = key_of(resource);
  return registered(key, subscribers_->observe(key, std::move(sink)));
}

result<std::unique_ptr<spi::subscription>> sqlite_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  const std::string key = key_of(resource);
  return registered(key, subscribers_->watch_latch(key, std::move(on_change)));
}

result<std::unique_ptr<spi::subscription>> sqlite_store::registered(
    const std::string& key, std::unique_ptr<spi::subscription> subscription) {
  if (auto begun = begin_verb(); !begun) return tl::unexpected(std::move(begun.error()));
  effects out;
  auto done = write(clock::now() + registering_limit, out, nullptr,
                    [&](ledger& book, const moment& step) { book.observe(step, key); });
  end_verb();
  if (!done) return tl::unexpected(std::move(done.error()));
  schedule_upkeep();
  return subscription;
}

// Neither immediate nor guaranteed: a client that is notified without reason just ignores it.
void sqlite_store::forget_observer(const std::string& key) {
  const time_point deadline = clock::now() + registering_limit;
  worker_->post(deadline, [weak = weak_from_this(), key, deadline](const result<void>& begun) {
    const auto self = weak.lock();
    if (!begun || !self || !self->begin_verb()) return;
    effects out;
    static_cast<void>(self->write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      // Checked inside the transaction: a listener that returns registers either
      // before this, or after it.
      if (!self->subscribers_->listens(key)) book.ignore(step, key);
    }));
    self->end_verb();
  });
}

}  // namespace holdfast::sqlite
