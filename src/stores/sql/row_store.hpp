// The store behind strategy=row: a hold is a row's lock (SELECT ... FOR UPDATE, readers: FOR SHARE) in a
// transaction that stays open on a connection of its own, and ends with it. How it is got:
// row_attempt.hpp.
#pragma once

#include "stores/sql/bound_store.hpp"
#include "stores/sql/row_pool.hpp"

#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe.
//
// A claim is tried on a free connection: transaction, lock without waiting; if it is not free the
// transaction ends, and the claim stands in a table until it is told to try again. If it is, the control connection
// writes down who holds, and gives the fence, before the grant is answered. Any error in a transaction
// ends its connection: what the server has rolled back must not be believed.
template <class Engine>
class row_store final : public bound_store<Engine> {
  using base = bound_store<Engine>;
  using base::control_;
  using base::fits;
  using base::guard_;
  using base::net_;
  using base::notifications_;
  using base::options_;
  using base::reactor_;
  using base::refusal;
  using base::run_out_;
  using base::usable;
  using typename base::arguments;
  using typename base::server_options;
  using typename base::statement;
  using pooled_connection = sql::pooled_connection<Engine>;

 public:
  static std::shared_ptr<row_store> make(std::shared_ptr<spi::reactor> reactor,
                                         server_options options);
  ~row_store() override;
  row_store(const row_store&) = delete;
  row_store& operator=(const row_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

 private:
  // An attempt under way. A leave that comes meanwhile is carried out after it.
  struct attempt_state {
    spi::claim_ptr claim;
    std::shared_ptr<spi::wakeup> wakeup;
    time_point sent;
    net::patience until;
    int tries = 0;
    bool heard = false;  // some step was answered: something of it may be there
    spi::completion<spi::outcome> done;
    std::vector<spi::task> after;  // guarded by mutex_
  };
  struct giving {
    std::size_t count = 0;
    std::vector<spi::task> then;
  };
  struct local_rows;
  static constexpr int try_limit = 4;                                   // of one attempt
  static constexpr duration give_back_limit = std::chrono::seconds(5);  // for one call
  static constexpr duration roll_back_limit = std::chrono::seconds(5);  // for one call

  row_store(std::shared_ptr<spi::reactor> reactor, server_options options);

  std::shared_ptr<row_store> own() {
    return std::static_pointer_cast<row_store>(this->shared_from_this());
  }
  static arguments description(const spi::claim& claim, const std::string& process);
  static void add_rest(arguments& with, const spi::claim& claim);

  void let_go(const spi::claim_id& claim) override;
  void give_back(const spi::claim& claim, duration delay) override;
  void close_carriers() noexcept override;

  // The steps of an attempt.
  void confirm(const std::shared_ptr<attempt_state>& what,
               const std::shared_ptr<pooled_connection>& holder);
  void take(const std::shared_ptr<attempt_state>& what);
  void took(const std::shared_ptr<attempt_state>& what,
            const std::shared_ptr<pooled_connection>& in, result<sql::rows> said);
  void record(const std::shared_ptr<attempt_state>& what,
              const std::shared_ptr<pooled_connection>& in, std::int64_t at_least,
              bound_claims::life life);
  void make_row(const std::shared_ptr<attempt_state>& what);
  void stand_in_line(const std::shared_ptr<attempt_state>& what);
  void finish(const std::shared_ptr<attempt_state>& what, result<spi::outcome> answer);

  static result<spi::departure> departure_of(const result<sql::rows>& said);
  void given(const std::string& key);
  void roll_back(const std::shared_ptr<pooled_connection>& in);
  void end(const std::shared_ptr<pooled_connection>& in, const spi::claim& claim, duration delay,
           time_point deadline, spi::completion<spi::departure> done);
  void beat(const std::shared_ptr<local_rows>& all, std::size_t index,
            const std::shared_ptr<pooled_connection>& in, time_point deadline);
  void arrived(local_rows& all);
  void refresh(const std::shared_ptr<local_rows>& all, std::vector<std::size_t> part,
               time_point deadline);

  std::shared_ptr<row_pool<Engine>> pool_;  // set by make(), then constant

  std::mutex mutex_;
  std::map<spi::claim_id, std::shared_ptr<attempt_state>>
      attempts_;  // guarded by mutex_: attempts under way
  // guarded by mutex_: names being given back. Who asks for one of them comes after, as on one connection.
  std::map<std::string, giving> giving_;
};

template <class Engine>
row_store<Engine>::row_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : base(std::move(reactor), std::move(options)) {}

template <class Engine>
std::shared_ptr<row_store<Engine>> row_store<Engine>::make(std::shared_ptr<spi::reactor> reactor,
                                                           server_options options) {
  std::shared_ptr<row_store> made(new row_store(std::move(reactor), std::move(options)));
  made->set_up();
  made->pool_ = std::make_shared<row_pool<Engine>>(made->net_, made->options_,
                                                   made->notifications_->process());
  made->control_->start();
  return made;
}

template <class Engine>
row_store<Engine>::~row_store() {
  if (!guard_.forked()) this->close();
}

template <class Engine>
void row_store<Engine>::close_carriers() noexcept {
  pool_->close();
}

template <class Engine>
void row_store<Engine>::leave(spi::claim_ptr claim, const spi::op_context& context,
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
  with.bytes(sql::key_of(claim->resource)).bytes(sql::bytes_of(claim->id));
  control_->send(statement::row_leave, std::move(with), context,
                 [finish = std::move(finish)](const result<sql::rows>& said) mutable {
                   finish(departure_of(said));
                 });
}

// The pooled connection is busy: its transaction ends with the claim, in one round trip.
template <class Engine>
void row_store<Engine>::end(const std::shared_ptr<pooled_connection>& in, const spi::claim& claim,
                            duration delay, time_point deadline,
                            spi::completion<spi::departure> done) {
  in->bound_claims->untie(claim.id);
  const std::string key = sql::key_of(claim.resource);
  {
    const std::lock_guard lock(mutex_);
    ++giving_[key].count;
  }
  auto ended = [self = own(), in, key,
                done = std::move(done)](result<spi::departure> answer) mutable {
    // Without an answer the transaction may be open still: its connection ends.
    if (!answer) in->over->reset();
    self->pool_->give(in);
    self->given(key);
    done(std::move(answer));
  };
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id));
  with.number(sql::microseconds(delay)).home();
  if constexpr (Engine::calls_end_transactions) {
    in->over->send(statement::row_end, std::move(with), deadline,
                   [ended = std::move(ended)](const result<sql::rows>& said) mutable {
                     ended(departure_of(said));
                   });
  } else {
    auto answer = std::make_shared<result<spi::departure>>();
    in->over->send(statement::row_end, std::move(with), deadline,
                   [answer](const result<sql::rows>& said) { *answer = departure_of(said); });
    in->over->send(statement::commit, {}, deadline,
                   [answer, ended = std::move(ended)](const result<sql::rows>& said) mutable {
                     if (!said) return ended(tl::unexpected(said.error()));
                     ended(std::move(*answer));
                   });
  }
}

template <class Engine>
result<spi::departure> row_store<Engine>::departure_of(const result<sql::rows>& said) {
  if (!said) return tl::unexpected(said.error());
  return to_departure(*said);
}

template <class Engine>
void row_store<Engine>::given(const std::string& key) {
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

template <class Engine>
void row_store<Engine>::let_go(const spi::claim_id& claim) {
  const auto in = pool_->find(claim);
  const spi::claim_ptr held = in == nullptr ? nullptr : in->bound_claims->find(claim);
  if (held != nullptr) give_back(*held, duration{0});
}

template <class Engine>
void row_store<Engine>::give_back(const spi::claim& claim, duration delay) {
  const auto in = pool_->claim(claim.id);
  if (in == nullptr) return;
  end(in, claim, delay, reactor_->now() + give_back_limit, [](const result<spi::departure>&) {});
}

// Several calls, one answer: of claims whose call failed nothing is known.
template <class Engine>
struct row_store<Engine>::local_rows {
  std::vector<spi::claim_ptr> claims;
  std::vector<spi::renewal> answers;  // each written by one call
  std::vector<spi::claim_id> may_be_free;
  time_point sent;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

template <class Engine>
void row_store<Engine>::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                              spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(refusal());
  auto all = std::make_shared<local_rows>();
  all->answers.resize(claims.size());
  all->claims = std::move(claims);
  all->sent = reactor_->now();
  all->done = std::move(done);
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < all->claims.size(); ++i) {
    if (const auto in = pool_->find(all->claims[i]->id)) {
      beat(all, i, in, context.deadline);
    } else {
      waiting.push_back(i);
    }
  }
  if (!waiting.empty()) refresh(all, std::move(waiting), context.deadline);
  arrived(*all);
}

template <class Engine>
void row_store<Engine>::arrived(local_rows& all) {
  if (all.missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto may_be_free = std::move(all.may_be_free);
  all.done(std::move(all.answers));
  for (const spi::claim_id& each : may_be_free) {
    notifications_->wakeup_registry().notify({stores::push::kind::freed, each});
  }
}

template <class Engine>
void row_store<Engine>::beat(const std::shared_ptr<local_rows>& all, std::size_t index,
                             const std::shared_ptr<pooled_connection>& in, time_point deadline) {
  all->missing.fetch_add(1, std::memory_order_relaxed);
  arguments with;
  with.bytes(sql::bytes_of(all->claims[index]->id)).home();
  in->over->send(statement::row_beat, std::move(with), deadline,
                 [self = own(), all, index](const result<sql::rows>& said) {
                   const auto answer =
                       said ? sql::to_renewals(*said, 1)
                            : result<std::vector<spi::renewal>>(tl::unexpected(said.error()));
                   if (answer) {
                     all->answers[index] = answer->front();
                     if (answer->front().state == spi::hold_state::renewed) {
                       self->run_out_->prove(all->claims[index], all->sent);
                     } else if (answer->front().state == spi::hold_state::lost) {
                       self->let_go(all->claims[index]->id);
                     }
                   } else {
                     all->answers[index].why = answer.error().detail;
                   }
                   self->arrived(*all);
                 });
}

template <class Engine>
void row_store<Engine>::refresh(const std::shared_ptr<local_rows>& all,
                                std::vector<std::size_t> part, time_point deadline) {
  all->missing.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const std::size_t index : part) {
    keys.push_back(sql::key_of(all->claims[index]->resource));
    ids.emplace_back(sql::bytes_of(all->claims[index]->id));
  }
  arguments with;
  with.list(keys).list(ids);
  control_->send(statement::row_renew, std::move(with), deadline,
                 [self = own(), all, part = std::move(part)](const result<sql::rows>& said) {
                   const auto answers =
                       said ? sql::to_renewals(*said, part.size())
                            : result<std::vector<spi::renewal>>(tl::unexpected(said.error()));
                   for (std::size_t i = 0; !answers && i < part.size(); ++i) {
                     all->answers[part[i]].why = answers.error().detail;
                   }
                   for (std::size_t i = 0; answers && i < part.size(); ++i) {
                     all->answers[part[i]] = (*answers)[i];
                     if ((*said)[i].starts_with("w ") && (*said)[i].ends_with(" 1")) {
                       all->may_be_free.push_back(all->claims[part[i]]->id);
                     }
                   }
                   self->arrived(*all);
                 });
}

}  // namespace holdfast::sql
