// The store behind strategy=row: a hold is a row's lock (SELECT ... FOR UPDATE, readers: FOR SHARE) in a
// transaction that stays open on a connection of its own, and ends with it.
#include "stores/sql/bound_claims.hpp"
#include "stores/sql/bound_store.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/words.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

namespace {

// One connection. Its hold, if it has one, is bound to its life.
struct pooled_connection {
  std::shared_ptr<connection> over;
  std::shared_ptr<sql::bound_claims> bound_claims = std::make_shared<sql::bound_claims>();
};

// Thread-safe. Completions are called exactly once, under no lock.
//
//   a pooled connection is  means                          changes to
//   free       no transaction, or ended       busy: lend()
//   busy       somebody tries, or gives back  free: give(); holding: keep()
//   holding    its transaction has a lock     busy: claim(); free: its connection ended
class row_pool : public std::enable_shared_from_this<row_pool> {
 public:
  // How many may wait for a pooled connection that is busy; then overloaded.
  static constexpr std::size_t wait_limit = 100'000;

  // `process`: by which the server knows this client.
  row_pool(net::network net, std::shared_ptr<const engine> of, std::string process)
      : net_(std::move(net)), engine_(std::move(of)), process_(std::move(process)) {}

  // A free pooled connection, as soon as there is one; overloaded: all hold locks, and waiting might be forever.
  void lend(spi::completion<std::shared_ptr<pooled_connection>> done);
  // The transaction has ended, or its connection.
  void give(const std::shared_ptr<pooled_connection>& back);
  // It holds this claim from now on.
  void keep(const std::shared_ptr<pooled_connection>& held, const spi::claim_id& claim);
  // Takes the pooled connection that holds this claim, to end it; null: none does.
  std::shared_ptr<pooled_connection> claim(const spi::claim_id& claim);
  // The same, and it stays.
  [[nodiscard]] std::shared_ptr<pooled_connection> find(const spi::claim_id& claim) const;

  void close() noexcept;

 private:
  enum class state : std::uint8_t { free, busy, holding };

  std::shared_ptr<pooled_connection> make(std::size_t number);
  void ended(const std::weak_ptr<pooled_connection>& whose);
  void serve();

  const net::network net_;
  const std::shared_ptr<const engine> engine_;
  const std::string process_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  bool closed_ = false;
  std::map<std::shared_ptr<pooled_connection>, state> pooled_;
  std::map<spi::claim_id, std::shared_ptr<pooled_connection>> held_;
  std::deque<spi::completion<std::shared_ptr<pooled_connection>>> waiting_;
};

// Under the mutex.
std::shared_ptr<pooled_connection> row_pool::make(std::size_t number) {
  auto made = std::make_shared<pooled_connection>();
  connection::events tell;
  tell.opened = [weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->bound_claims->begin(self->over->home());
  };
  tell.ended = [weak = std::weak_ptr(made), pool = weak_from_this()](const error& why) {
    if (const auto self = weak.lock()) self->bound_claims->end(why);
    if (const auto all = pool.lock()) all->ended(weak);
  };
  // Nothing is lost with a connection that holds nothing.
  tell.silence = [bound_claims = made->bound_claims] {
    return bound_claims->count() == 0 ? connection::silence_limit : sql::longest_belief;
  };
  made->over =
      engine_->make_carrier(net_, process_ + "/" + std::to_string(number), std::move(tell));
  return made;
}

void row_pool::lend(spi::completion<std::shared_ptr<pooled_connection>> done) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && waiting_.size() < wait_limit) {
      const auto free = std::find_if(pooled_.begin(), pooled_.end(),
                                     [](const auto& each) { return each.second == state::free; });
      if (free == pooled_.end() && pooled_.size() < engine_->options().connections) {
        pooled_.emplace(make(pooled_.size()), state::free);
      }
      waiting_.push_back(std::move(done));
      done = nullptr;
    }
  }
  if (done) {
    return done(failure(errc::overloaded, engine_->name + ": closed, or too many tries at once"));
  }
  serve();
}

// Connections to those who wait for one; where all hold locks there is nothing to wait for.
void row_pool::serve() {
  for (;;) {
    spi::completion<std::shared_ptr<pooled_connection>> next;
    std::shared_ptr<pooled_connection> given;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      const auto in = [&](state wanted) {
        return std::find_if(pooled_.begin(), pooled_.end(),
                            [&](const auto& each) { return each.second == wanted; });
      };
      if (const auto free = in(state::free); free != pooled_.end()) {
        free->second = state::busy;
        given = free->first;
      } else if (!closed_ && in(state::busy) != pooled_.end()) {
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (given != nullptr) {
      next(std::move(given));
    } else {
      next(failure(errc::overloaded,
                   engine_->name + ": each of the " +
                       std::to_string(engine_->options().connections) +
                       " connections of this client holds a lock; connections=N in the URL"));
    }
  }
}

void row_pool::give(const std::shared_ptr<pooled_connection>& back) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(back);
    if (found != pooled_.end()) found->second = state::free;
    if (waiting_.empty()) return;
  }
  // Not from within: where calls are refused at once, each would serve the next, one inside the other.
  net_.reactor->post([self = shared_from_this()] { self->serve(); });
}

void row_pool::keep(const std::shared_ptr<pooled_connection>& held, const spi::claim_id& claim) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(held);
    if (found == pooled_.end()) return;
    found->second = state::holding;
    held_[claim] = held;
  }
  serve();
}

std::shared_ptr<pooled_connection> row_pool::claim(const spi::claim_id& claim) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  if (found == held_.end()) return nullptr;
  std::shared_ptr<pooled_connection> taken = std::move(found->second);
  held_.erase(found);
  pooled_[taken] = state::busy;
  return taken;
}

std::shared_ptr<pooled_connection> row_pool::find(const spi::claim_id& claim) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(claim);
  return found == held_.end() ? nullptr : found->second;
}

// What it held is lost, and has been told; who uses it for a moment hears of it by the answer. It
// connects again, since that ends what the server may still believe to be there.
void row_pool::ended(const std::weak_ptr<pooled_connection>& whose) {
  const std::shared_ptr<pooled_connection> over = whose.lock();
  {
    const std::lock_guard lock(mutex_);
    const auto found = pooled_.find(over);
    if (found == pooled_.end() || closed_) return;
    if (found->second == state::holding) {
      found->second = state::free;
      std::erase_if(held_, [&](const auto& each) { return each.second == over; });
    }
  }
  over->over->start();
  serve();
}

void row_pool::close() noexcept {
  std::vector<std::shared_ptr<pooled_connection>> all;
  std::deque<spi::completion<std::shared_ptr<pooled_connection>>> waiting;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [each, is] : pooled_) all.push_back(each);
    waiting.swap(waiting_);
  }
  for (const auto& each : all) each->over->close();
  for (auto& each : waiting) {
    each(failure(errc::unavailable, engine_->name + ": closed"));
  }
}

// Thread-safe.
//
// A claim is tried on a free connection: transaction, lock without waiting; if it is not free the
// transaction ends, and the claim stands in a table until it is told to try again. If it is, the control connection
// writes down who holds, and gives the fence, before the grant is answered. Any error in a transaction
// ends its connection: what the server has rolled back must not be believed.
class row_store final : public bound_store {
 public:
  static std::shared_ptr<row_store> make(std::shared_ptr<spi::reactor> reactor,
                                         std::shared_ptr<const engine> of);
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

  using bound_store::bound_store;

  std::shared_ptr<row_store> own() {
    return std::static_pointer_cast<row_store>(shared_from_this());
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

  std::shared_ptr<row_pool> pool_;  // set by make(), then constant

  std::mutex mutex_;
  std::map<spi::claim_id, std::shared_ptr<attempt_state>>
      attempts_;  // guarded by mutex_: attempts under way
  // guarded by mutex_: names being given back. Who asks for one of them comes after, as on one connection.
  std::map<std::string, giving> giving_;
};

std::shared_ptr<row_store> row_store::make(std::shared_ptr<spi::reactor> reactor,
                                           std::shared_ptr<const engine> of) {
  std::shared_ptr<row_store> made(new row_store(std::move(reactor), of));
  made->set_up();
  made->pool_ = std::make_shared<row_pool>(made->net_, of, made->notifications_->process());
  made->control_->start();
  return made;
}

row_store::~row_store() {
  if (!guard_.forked()) close();
}

void row_store::close_carriers() noexcept { pool_->close(); }

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
  with.bytes(sql::key_of(claim->resource)).bytes(sql::bytes_of(claim->id));
  control_->send(statement::row_leave, std::move(with), context,
                 [finish = std::move(finish)](const result<sql::rows>& said) mutable {
                   finish(departure_of(said));
                 });
}

// The pooled connection is busy: its transaction ends with the claim, in one round trip.
void row_store::end(const std::shared_ptr<pooled_connection>& in, const spi::claim& claim,
                    duration delay, time_point deadline, spi::completion<spi::departure> done) {
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
  if (engine_->calls_end_transactions) {
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

result<spi::departure> row_store::departure_of(const result<sql::rows>& said) {
  if (!said) return tl::unexpected(said.error());
  return to_departure(*said);
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
  end(in, claim, delay, reactor_->now() + give_back_limit, [](const result<spi::departure>&) {});
}

// Several calls, one answer: of claims whose call failed nothing is known.
struct row_store::local_rows {
  std::vector<spi::claim_ptr> claims;
  std::vector<spi::renewal> answers;  // each written by one call
  std::vector<spi::claim_id> may_be_free;
  time_point sent;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

void row_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
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

void row_store::arrived(local_rows& all) {
  if (all.missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto may_be_free = std::move(all.may_be_free);
  all.done(std::move(all.answers));
  for (const spi::claim_id& each : may_be_free) {
    notifications_->wakeup_registry().notify({stores::push::kind::freed, each});
  }
}

void row_store::beat(const std::shared_ptr<local_rows>& all, std::size_t index,
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

void row_store::refresh(const std::shared_ptr<local_rows>& all, std::vector<std::size_t> part,
                        time_point deadline) {
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

// An attempt: a try in a transaction of its own, who holds written down, a place in line.

// What the control connection writes down of a claim.
arguments row_store::description(const spi::claim& claim, const std::string& process) {
  arguments with;
  with.bytes(sql::key_of(claim.resource)).bytes(sql::bytes_of(claim.id));
  with.text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  return with;
}

void row_store::add_rest(arguments& with, const spi::claim& claim) {
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(std::max(claim.fence_block, 1U)).bytes(claim.payload);
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

// Asked again: the answer was lost on its way to the core.
void row_store::confirm(const std::shared_ptr<attempt_state>& what,
                        const std::shared_ptr<pooled_connection>& holder) {
  arguments with;
  with.bytes(sql::bytes_of(what->claim->id)).home();
  holder->over->send(statement::row_beat, std::move(with), what->until,
                     [self = own(), what](const result<sql::rows>& said) {
                       if (!said) return self->finish(what, tl::unexpected(said.error()));
                       const auto answer = sql::to_renewals(*said, 1);
                       if (!answer) return self->finish(what, tl::unexpected(answer.error()));
                       if (answer->front().state == spi::hold_state::lost) {
                         return self->finish(what,
                                             self->failed(errc::unavailable, "it was taken away"));
                       }
                       self->finish(what, spi::outcome(answer->front().grant));
                     });
}

void row_store::take(const std::shared_ptr<attempt_state>& what) {
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
    if (!self->engine_->calls_end_transactions) {
      in->over->send(statement::begin, {}, what->until, [](const result<sql::rows>&) {});
    }
    in->over->send(
        statement::row_take, std::move(with), what->until,
        [self, what, in](result<sql::rows> said) { self->took(what, in, std::move(said)); });
  });
}

void row_store::took(const std::shared_ptr<attempt_state>& what,
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

void row_store::record(const std::shared_ptr<attempt_state>& what,
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
          self->finish(what, self->failed(errc::unavailable, "its connection has ended"));
        }
      });
}

void row_store::make_row(const std::shared_ptr<attempt_state>& what) {
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
void row_store::stand_in_line(const std::shared_ptr<attempt_state>& what) {
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

// What follows on the same connection comes after it: no need to wait for the answer.
void row_store::roll_back(const std::shared_ptr<pooled_connection>& in) {
  in->over->send(statement::rollback, {}, reactor_->now() + roll_back_limit,
                 [in](const result<sql::rows>& said) {
                   if (!said) in->over->reset();
                 });
  pool_->give(in);
}

}  // namespace

std::shared_ptr<spi::store> make_row_store(std::shared_ptr<spi::reactor> reactor,
                                           std::shared_ptr<const engine> of) {
  return row_store::make(std::move(reactor), std::move(of));
}

}  // namespace holdfast::sql
