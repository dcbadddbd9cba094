// The store behind strategy=row: a hold is a row's lock (SELECT ... FOR UPDATE, readers: FOR SHARE) in a
// transaction that stays open on a connection of its own, and ends with it.
#include "stores/sql/bound_store.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/renewal_batch.hpp"
#include "stores/sql/row_pool.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

namespace {

// Thread-safe.
//
// A claim is tried on a free connection: transaction, lock without waiting; if it is not free, the
// transaction ends, and the claim waits in a table until notified to try again. If it is, the
// control connection records who holds, and gives the fence, before the grant is answered. Any
// error in a transaction ends its connection: the server may have rolled it back.
class row_store final : public bound_store {
 public:
  using bound_store::bound_store;
  void open();  // once, when the store is shared
  ~row_store() override {
    if (!guard_.forked()) close();
  }
  row_store(const row_store&) = delete;
  row_store& operator=(const row_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

 private:
  // An attempt under way. A leave that comes meanwhile is executed after it.
  struct attempt_state {
    spi::claim_ptr claim;
    std::shared_ptr<spi::wakeup> wakeup;
    time_point sent;
    net::patience until;
    int tries = 0;
    bool heard = false;  // some step was answered: it may have left something behind
    spi::completion<spi::outcome> done;
    std::vector<spi::task> after;  // guarded by mutex_
  };
  struct giving {
    std::size_t count = 0;
    std::vector<spi::task> then;
  };
  static constexpr int try_limit = 4;                              // tries of one attempt
  static constexpr duration call_limit = std::chrono::seconds(5);  // nobody waits for the answer

  std::shared_ptr<row_store> own() {
    return std::static_pointer_cast<row_store>(shared_from_this());
  }
  [[nodiscard]] arguments description(const spi::claim& claim,
                                      std::optional<bool> queued = {}) const;

  void let_go(const spi::claim_id& claim) override;
  void give_back(const spi::claim& claim, duration delay) override;
  void close_carriers() noexcept override { pool_->close(); }

  // The steps of an attempt.
  void confirm(const std::shared_ptr<attempt_state>& what,
               const std::shared_ptr<pooled_connection>& holder);
  void take(const std::shared_ptr<attempt_state>& what);
  void took(const std::shared_ptr<attempt_state>& what,
            const std::shared_ptr<pooled_connection>& in, result<rows> said);
  void record(const std::shared_ptr<attempt_state>& what,
              const std::shared_ptr<pooled_connection>& in, std::int64_t at_least,
              bound_claims::life life);
  void make_row(const std::shared_ptr<attempt_state>& what);
  void stand_in_line(const std::shared_ptr<attempt_state>& what);
  void finish(const std::shared_ptr<attempt_state>& what, result<spi::outcome> answer);

  void given(const std::string& key);
  void roll_back(const std::shared_ptr<pooled_connection>& in);
  void end(const std::shared_ptr<pooled_connection>& in, const spi::claim& claim, duration delay,
           time_point deadline, spi::completion<spi::departure> done);
  void beat(const std::shared_ptr<renewal_batch>& whole, std::size_t index,
            const spi::claim_ptr& claim, pooled_connection& in, time_point deadline);

  std::shared_ptr<row_pool> pool_;  // set by make(), then constant

  std::mutex mutex_;
  // All below: guarded by mutex_. Attempts for a name that is being given back come after, as on one connection.
  std::map<spi::claim_id, std::shared_ptr<attempt_state>> attempts_;  // under way
  std::map<std::string, giving> giving_;
};

void row_store::open() {
  set_up();
  pool_ = std::make_shared<row_pool>(net_, engine_, notifications_->process());
  control_->start();
}

void row_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                      spi::completion<spi::departure> done) {
  if (!usable()) return done(refusal());
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(claim->id);
    if (found != attempts_.end()) {
      found->second->after.emplace_back(
          [self = own(), claim, context, done = std::move(done)]() mutable {
            self->leave(claim, context, std::move(done));
          });
      return;
    }
  }
  run_out_->forget(claim->id);
  auto finish = [self = own(), id = claim->id,
                 done = std::move(done)](result<spi::departure> answer) mutable {
    self->notifications_->wakeup_registry().remove(id);
    done(std::move(answer));
  };
  if (const auto in = pool_->claim(claim->id)) {
    return end(in, *claim, duration{0}, context.deadline, std::move(finish));
  }
  arguments with;
  with.bytes(key_of(claim->resource)).bytes(bytes_of(claim->id));
  ask<spi::departure>(*control_, statement::row_leave, std::move(with), context, std::move(finish),
                      to_departure);
}

// The pooled connection is busy: its transaction ends with the claim, in one round trip.
void row_store::end(const std::shared_ptr<pooled_connection>& in, const spi::claim& claim,
                    duration delay, time_point deadline, spi::completion<spi::departure> done) {
  in->bound_claims->untie(claim.id);
  const std::string key = key_of(claim.resource);
  {
    const std::lock_guard lock(mutex_);
    ++giving_[key].count;
  }
  auto ended = [self = own(), in, key,
                done = std::move(done)](result<spi::departure> answer) mutable {
    // Without an answer the transaction may still be open: its connection ends.
    if (!answer) in->over->reset();
    self->pool_->give(in);
    self->given(key);
    done(std::move(answer));
  };
  arguments with;
  with.bytes(key).bytes(bytes_of(claim.id));
  with.number(microseconds(delay)).home();
  if (engine_->calls_end_transactions) {
    ask<spi::departure>(*in->over, statement::row_end, std::move(with), deadline, std::move(ended),
                        to_departure);
  } else {
    auto answer = std::make_shared<result<spi::departure>>();
    in->over->send(statement::row_end, std::move(with), deadline,
                   [answer](const result<rows>& said) {
                     *answer = said ? to_departure(*said) : tl::unexpected(said.error());
                   });
    in->over->send(statement::commit, {}, deadline,
                   [answer, ended = std::move(ended)](const result<rows>& said) mutable {
                     if (!said) return ended(tl::unexpected(said.error()));
                     ended(std::move(*answer));
                   });
  }
}

void row_store::given(const std::string& key) {
  std::vector<spi::task> then;
  {
    const std::lock_guard lock(mutex_);
    const auto found = giving_.find(key);
    if (--found->second.count > 0) return;
    then.swap(found->second.then);
    giving_.erase(found);
  }
  for (spi::task& each : then) each();
}

void row_store::let_go(const spi::claim_id& claim) {
  const auto in = pool_->find(claim);
  const spi::claim_ptr held = in == nullptr ? nullptr : in->bound_claims->find(claim);
  if (held != nullptr) give_back(*held, duration{0});
}

void row_store::give_back(const spi::claim& claim, duration delay) {
  const auto in = pool_->claim(claim.id);
  if (in == nullptr) return;
  end(in, claim, delay, reactor_->now() + call_limit, [](const result<spi::departure>&) {});
}

// Holds one by one on their connections, waiters together.
void row_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                      spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(refusal());
  if (claims.empty()) return done(std::vector<spi::renewal>{});
  std::vector<std::pair<std::size_t, std::shared_ptr<pooled_connection>>> held;
  std::vector<std::size_t> waiting;
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (auto in = pool_->find(claims[i]->id)) {
      held.emplace_back(i, std::move(in));
      continue;
    }
    waiting.push_back(i);
    keys.push_back(key_of(claims[i]->resource));
    ids.emplace_back(bytes_of(claims[i]->id));
  }
  const auto may_be_free = std::make_shared<std::vector<spi::claim_id>>();
  const auto whole = std::make_shared<renewal_batch>(
      claims.size(), held.size() + (waiting.empty() ? 0 : 1),
      [self = own(), may_be_free,
       done = std::move(done)](result<std::vector<spi::renewal>> answers) mutable {
        done(std::move(answers));
        for (const spi::claim_id& each : *may_be_free) {
          self->notifications_->wakeup_registry().notify({stores::push::kind::freed, each});
        }
      });
  for (const auto& [index, in] : held) beat(whole, index, claims[index], *in, context.deadline);
  if (waiting.empty()) return;
  arguments with;
  with.list(std::move(keys)).list(std::move(ids));
  control_->send(statement::row_renew, std::move(with), context.deadline,
                 [whole, may_be_free, claims = std::move(claims),
                  waiting = std::move(waiting)](const result<rows>& said) {
                   if (!said) return whole->take(waiting, tl::unexpected(said.error()));
                   auto answers = to_renewals(*said, waiting.size());
                   for (std::size_t i = 0; answers && i < waiting.size(); ++i) {
                     if ((*said)[i].starts_with("w ") && (*said)[i].ends_with(" 1")) {
                       may_be_free->push_back(claims[waiting[i]]->id);
                     }
                   }
                   whole->take(waiting, std::move(answers));
                 });
}

void row_store::beat(const std::shared_ptr<renewal_batch>& whole, std::size_t index,
                     const spi::claim_ptr& claim, pooled_connection& in, time_point deadline) {
  arguments with;
  with.bytes(bytes_of(claim->id)).home();
  in.over->send(
      statement::row_beat, std::move(with), deadline,
      [self = own(), whole, index, claim, sent = reactor_->now()](const result<rows>& said) {
        if (!said) return whole->take({index}, tl::unexpected(said.error()));
        auto answer = to_renewals(*said, 1);
        if (answer && answer->front().state == spi::hold_state::renewed) {
          self->run_out_->prove(claim, sent);
        } else if (answer && answer->front().state == spi::hold_state::lost) {
          self->let_go(claim->id);
        }
        whole->take({index}, std::move(answer));
      });
}

// What the control connection records of a claim. `queued`: whether it wants to wait, if asked.
arguments row_store::description(const spi::claim& claim, std::optional<bool> queued) const {
  arguments with;
  with.bytes(key_of(claim.resource)).bytes(bytes_of(claim.id));
  with.text(spi::public_id(claim.id)).text(notifications_->process());
  with.number(static_cast<std::int64_t>(claim.mode));
  if (queued) with.flag(*queued);
  with.number(microseconds(claim.ttl)).number(microseconds(claim.lock_delay));
  with.number(std::max(claim.fence_block, 1U)).bytes(claim.payload);
  return with;
}

void row_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                        const spi::op_context& context, spi::completion<spi::outcome> done) {
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

// A repetition: the answer was lost on its way to the core.
void row_store::confirm(const std::shared_ptr<attempt_state>& what,
                        const std::shared_ptr<pooled_connection>& holder) {
  arguments with;
  with.bytes(bytes_of(what->claim->id)).home();
  holder->over->send(statement::row_beat, std::move(with), what->until,
                     [self = own(), what, holder](const result<rows>& said) {
                       if (!said) return self->finish(what, tl::unexpected(said.error()));
                       const auto answer = to_renewals(*said, 1);
                       if (!answer) return self->finish(what, tl::unexpected(answer.error()));
                       if (answer->front().state == spi::hold_state::lost ||
                           !self->run_out_->extend(what->claim, what->sent) ||
                           !holder->bound_claims->deliver_again(what->claim->id, what->wakeup, [&] {
                             self->finish(what, spi::outcome(answer->front().grant));
                           })) {
                         self->finish(what, self->failed(errc::unavailable, "it was taken away"));
                       }
                     });
}

void row_store::take(const std::shared_ptr<attempt_state>& what) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = giving_.find(key_of(what->claim->resource));
    if (found != giving_.end()) {
      found->second.then.emplace_back([self = own(), what] { self->take(what); });
      return;
    }
  }
  ++what->tries;
  pool_->lend(what->until.deadline, [self = own(), what](auto given) {
    if (!given) return self->finish(what, tl::unexpected(given.error()));
    const std::shared_ptr<pooled_connection> in = *std::move(given);
    arguments with;
    with.bytes(key_of(what->claim->resource)).bytes(bytes_of(what->claim->id));
    with.number(static_cast<std::int64_t>(what->claim->mode));
    with.number(std::max(what->claim->fence_block, 1U)).home();
    if (!self->engine_->calls_end_transactions) {
      in->over->send(statement::begin, {}, what->until, [](const result<rows>&) {});
    }
    in->over->send(statement::row_take, std::move(with), what->until,
                   [self, what, in](result<rows> said) { self->took(what, in, std::move(said)); });
  });
}

void row_store::took(const std::shared_ptr<attempt_state>& what,
                     const std::shared_ptr<pooled_connection>& in, result<rows> said) {
  if (!said || said->size() != 1) {
    // It may still be executed, but not on a connection that stays open. Unsent, it may have begun.
    if (said || !said.error().unsent) in->over->reset();
    in->over->is_open() ? roll_back(in) : pool_->give(in);
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

void row_store::record(const std::shared_ptr<attempt_state>& what,
                       const std::shared_ptr<pooled_connection>& in, std::int64_t at_least,
                       bound_claims::life life) {
  arguments with = description(*what->claim);
  with.number(life).number(at_least);
  control_->send(
      statement::row_record, std::move(with), what->until,
      [self = own(), what, in, life](result<rows> said) {
        auto answer = said && said->size() == 1 && said->front() != "b"
                          ? to_outcome(*said)
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
          self->finish(what, self->failed(errc::unavailable, "its connection has ended"));
        }
      });
}

void row_store::make_row(const std::shared_ptr<attempt_state>& what) {
  arguments with;
  with.bytes(key_of(what->claim->resource));
  control_->send(statement::row_make, std::move(with), what->until,
                 [self = own(), what](const result<rows>& said) {
                   if (!said) return self->finish(what, tl::unexpected(said.error()));
                   const bool made = said->size() == 1 && said->front() == "m";
                   made ? self->take(what) : self->stand_in_line(what);
                 });
}

// It is not free. To wait, it queues first and then tries again: it is not notified of
// what became free before.
void row_store::stand_in_line(const std::shared_ptr<attempt_state>& what) {
  control_->send(statement::row_queue, description(*what->claim, what->claim->queued), what->until,
                 [self = own(), what](const result<rows>& said) {
                   if (!said) return self->finish(what, tl::unexpected(said.error()));
                   const bool fresh = said->size() == 1 && said->front().ends_with(" new");
                   if (fresh && what->tries < try_limit) return self->take(what);
                   self->finish(what, to_outcome(*said));
                 });
}

void row_store::finish(const std::shared_ptr<attempt_state>& what, result<spi::outcome> answer) {
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

// Later calls on the same connection come after it: no need to wait for the answer.
void row_store::roll_back(const std::shared_ptr<pooled_connection>& in) {
  in->over->send(statement::rollback, {}, reactor_->now() + call_limit,
                 [in](const result<rows>& said) {
                   if (!said) in->over->reset();
                 });
  pool_->give(in);
}

}  // namespace

std::shared_ptr<spi::store> make_row_store(std::shared_ptr<spi::reactor> reactor,
                                           std::shared_ptr<const engine> of) {
  const auto made = std::make_shared<row_store>(std::move(reactor), std::move(of));
  made->open();
  return made;
}

}  // namespace holdfast::sql
