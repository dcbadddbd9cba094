// An attempt of strategy=row: a try in a transaction of its own, who holds written down, a place in line.
#pragma once

#include "stores/sql/names.hpp"
#include "stores/sql/row_store.hpp"
#include "stores/sql/words.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sql {

// What the control connection writes down of a claim.
template <class Engine>
typename row_store<Engine>::arguments row_store<Engine>::description(const spi::claim& claim,
                                                                     const std::string& process) {
  arguments with;
  with.bytes(sql::key_of(claim.resource)).bytes(sql::bytes_of(claim.id));
  with.text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  return with;
}

template <class Engine>
void row_store<Engine>::add_rest(arguments& with, const spi::claim& claim) {
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(std::max(claim.fence_block, 1U)).bytes(claim.payload);
}

template <class Engine>
void row_store<Engine>::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                                const spi::op_context& context,
                                spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  if (auto fine = fits(*claim); !fine) return done(tl::unexpected(std::move(fine.error())));
  notifications_->wakeup_registry().add(claim->id, wakeup);
  auto what = std::make_shared<attempt_state>();
  what->claim = std::move(claim);
  what->wakeup = std::move(wakeup);
  what->sent = reactor_->now();
  what->until = context;
  what->done = std::move(done);
  {
    const std::lock_guard lock(mutex_);
    attempts_[what->claim->id] = what;
  }
  if (const auto holder = pool_->find(what->claim->id)) return confirm(what, holder);
  take(what);
}

// Asked again: the answer was lost on its way to the core.
template <class Engine>
void row_store<Engine>::confirm(const std::shared_ptr<attempt_state>& what,
                                const std::shared_ptr<pooled_connection>& holder) {
  arguments with;
  with.bytes(sql::bytes_of(what->claim->id)).home();
  holder->over->send(
      statement::row_beat, std::move(with), what->until,
      [self = own(), what](const result<sql::rows>& said) {
        if (!said) return self->finish(what, tl::unexpected(said.error()));
        const auto answer = sql::to_renewals(*said, 1);
        if (!answer) return self->finish(what, tl::unexpected(answer.error()));
        if (answer->front().state == spi::hold_state::lost) {
          return self->finish(
              what, failure(errc::unavailable, std::string(Engine::name) + ": it was taken away"));
        }
        self->finish(what, spi::outcome(answer->front().grant));
      });
}

template <class Engine>
void row_store<Engine>::take(const std::shared_ptr<attempt_state>& what) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = giving_.find(sql::key_of(what->claim->resource));
    if (found != giving_.end()) {
      found->second.then.emplace_back([self = own(), what] { self->take(what); });
      return;
    }
  }
  ++what->tries;
  pool_->lend([self = own(), what](result<std::shared_ptr<pooled_connection>> given) {
    if (!given) return self->finish(what, tl::unexpected(given.error()));
    const std::shared_ptr<pooled_connection> in = *std::move(given);
    arguments with;
    with.bytes(sql::key_of(what->claim->resource)).bytes(sql::bytes_of(what->claim->id));
    with.number(static_cast<std::int64_t>(what->claim->mode));
    with.number(std::max(what->claim->fence_block, 1U)).home();
    if constexpr (!Engine::calls_end_transactions) {
      in->over->send(statement::begin, {}, what->until, [](const result<sql::rows>&) {});
    }
    in->over->send(
        statement::row_take, std::move(with), what->until,
        [self, what, in](result<sql::rows> said) { self->took(what, in, std::move(said)); });
  });
}

template <class Engine>
void row_store<Engine>::took(const std::shared_ptr<attempt_state>& what,
                             const std::shared_ptr<pooled_connection>& in, result<sql::rows> said) {
  if (!said || said->size() != 1) {
    // It may be carried out yet: not on a connection that lives on.
    in->over->reset();
    pool_->give(in);
    return finish(what, said ? failure(errc::unavailable, "the answer is not one of this version's")
                             : result<spi::outcome>(tl::unexpected(std::move(said.error()))));
  }
  what->heard = true;
  sql::words line(said->front());
  const std::string_view kind = line.word();
  if (kind == "g") {
    const auto at_least = line.number();
    return record(what, in, at_least, line.number());
  }
  roll_back(in);
  if (kind == "m" && what->tries < try_limit) return make_row(what);
  stand_in_line(what);
}

template <class Engine>
void row_store<Engine>::record(const std::shared_ptr<attempt_state>& what,
                               const std::shared_ptr<pooled_connection>& in, std::int64_t at_least,
                               bound_claims::life life) {
  arguments with = description(*what->claim, notifications_->process());
  add_rest(with, *what->claim);
  with.number(life).number(at_least);
  control_->send(
      statement::row_record, std::move(with), what->until,
      [self = own(), what, in, life](result<sql::rows> said) {
        auto answer = said && said->size() == 1 && said->front() != "b"
                          ? sql::to_outcome(*said)
                          : result<spi::outcome>(failure(errc::unavailable, "not written down"));
        const bool granted = answer && std::holds_alternative<spi::granted>(*answer);
        if (!granted) {
          const bool blocked = said && said->size() == 1 && said->front() == "b";
          if (blocked) {
            self->roll_back(in);
            return self->stand_in_line(what);
          }
          in->over->reset();
          self->pool_->give(in);
          return self->finish(
              what, said ? std::move(answer) : result<spi::outcome>(tl::unexpected(said.error())));
        }
        self->run_out_->prove(what->claim, what->sent);
        self->pool_->keep(in, what->claim->id);
        if (!in->bound_claims->tie(life, what->claim, what->wakeup,
                                   [&] { self->finish(what, std::move(answer)); })) {
          if (const auto kept = self->pool_->claim(what->claim->id)) self->pool_->give(kept);
          self->finish(what, failure(errc::unavailable,
                                     std::string(Engine::name) + ": its connection has ended"));
        }
      });
}

template <class Engine>
void row_store<Engine>::make_row(const std::shared_ptr<attempt_state>& what) {
  arguments with;
  with.bytes(sql::key_of(what->claim->resource));
  control_->send(statement::row_make, std::move(with), what->until,
                 [self = own(), what](const result<sql::rows>& said) {
                   if (!said) return self->finish(what, tl::unexpected(said.error()));
                   const bool made = said->size() == 1 && said->front() == "m";
                   made ? self->take(what) : self->stand_in_line(what);
                 });
}

// It is not free. Who wants to wait stands in line first and then tries once more: what became free
// before was told to nobody.
template <class Engine>
void row_store<Engine>::stand_in_line(const std::shared_ptr<attempt_state>& what) {
  arguments with = description(*what->claim, notifications_->process());
  with.flag(what->claim->queued);
  add_rest(with, *what->claim);
  control_->send(statement::row_queue, std::move(with), what->until,
                 [self = own(), what](const result<sql::rows>& said) {
                   if (!said) return self->finish(what, tl::unexpected(said.error()));
                   const bool fresh = said->size() == 1 && said->front().ends_with(" new");
                   if (fresh && what->tries < try_limit) return self->take(what);
                   self->finish(what, sql::to_outcome(*said));
                 });
}

template <class Engine>
void row_store<Engine>::finish(const std::shared_ptr<attempt_state>& what,
                               result<spi::outcome> answer) {
  if (!answer && what->heard) answer.error().unsent = false;
  if (is_turned_away(answer)) notifications_->wakeup_registry().remove(what->claim->id);
  std::vector<spi::task> after;
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(what->claim->id);
    if (found != attempts_.end() && found->second == what) attempts_.erase(found);
    after.swap(what->after);
  }
  what->done(std::move(answer));
  for (spi::task& each : after) each();
}

// What follows on the same connection comes after it: no need to wait for the answer.
template <class Engine>
void row_store<Engine>::roll_back(const std::shared_ptr<pooled_connection>& in) {
  in->over->send(statement::rollback, {}, reactor_->now() + roll_back_limit,
                 [in](const result<sql::rows>& said) {
                   if (!said) in->over->reset();
                 });
  pool_->give(in);
}

}  // namespace holdfast::sql
