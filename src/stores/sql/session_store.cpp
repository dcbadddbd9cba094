// The store behind strategy=session: a hold is a lock of the server that belongs to the one
// connection that carries all holds of this client. It ends with that connection; waiters ask again
// when they are notified, so that no waiter occupies a connection.
#include "stores/sql/bound_claims.hpp"
#include "stores/sql/bound_store.hpp"

#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

namespace {

// Thread-safe.
//
// A hold is valid while the connection lives and answers arrive: the end of a connection is the
// loss of all that it carried, reported at once, and no answer of a former connection is a grant.
// An answered call of renew proves life; the server keeps a connection that it hears nothing from
// for longer than any hold on it is valid.
class session_store final : public bound_store {
 public:
  using bound_store::bound_store;
  // Holds of one client at a time; the server's table of locks is shared by all its users.
  static constexpr std::size_t hold_limit = 4'096;

  // Called once, when the store is shared.
  void open();
  ~session_store() override {
    if (!guard_.forked()) close();
  }
  session_store(const session_store&) = delete;
  session_store& operator=(const session_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

 private:
  static constexpr duration give_back_limit = std::chrono::seconds(5);  // for one call

  std::shared_ptr<session_store> own() {
    return std::static_pointer_cast<session_store>(shared_from_this());
  }
  static arguments attempt_of(const std::string& key, const spi::claim& claim,
                              const std::string& process);
  static bound_claims::life life_of(const std::string& grant);

  void let_go(const spi::claim_id& claim) override;
  void close_carriers() noexcept override;
  void granted(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& holder,
               time_point sent, const sql::rows& said, spi::completion<spi::outcome> done);
  void renewed(const std::vector<spi::claim_ptr>& claims, time_point sent, const sql::rows& said,
               spi::completion<std::vector<spi::renewal>> done);
  void give_back(const spi::claim& claim, duration delay) override;
  void end_carrier(bound_claims::life life);

  // Set by make(), then constant.
  std::shared_ptr<sql::bound_claims> bound_claims_ = std::make_shared<sql::bound_claims>();
  std::shared_ptr<connection> carrier_;
};

arguments session_store::attempt_of(const std::string& key, const spi::claim& claim,
                                    const std::string& process) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode)).flag(claim.queued);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(std::max(claim.fence_block, 1U)).bytes(claim.payload).home();
  return with;
}

// The last word of a grant names the backend that has the lock.
bound_claims::life session_store::life_of(const std::string& grant) {
  const std::size_t space = grant.rfind(' ');
  bound_claims::life life = 0;
  if (space != std::string::npos) {
    std::from_chars(grant.data() + space + 1, grant.data() + grant.size(), life);
  }
  return life;
}

void session_store::open() {
  set_up();
  const std::weak_ptr<session_store> weak = own();
  connection::events tell;
  tell.opened = [weak] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->bound_claims_->begin(self->carrier_->home());
    self->notifications_->wakeup_registry().notify_all();  // the waiters of the former session
  };
  tell.ended = [bound_claims = bound_claims_](const error& why) { bound_claims->end(why); };
  // Nothing is lost with a connection that carries nothing.
  tell.silence = [bound_claims = bound_claims_] {
    return bound_claims->count() == 0 ? connection::silence_limit : sql::longest_belief;
  };
  carrier_ = engine_->make_carrier(net_, notifications_->process(), std::move(tell));
  notifications_->follow(*carrier_);
  carrier_->start();
}

void session_store::close_carriers() noexcept { carrier_->close(); }

void session_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  if (auto fine = fits(*claim); !fine) return done(tl::unexpected(std::move(fine.error())));
  if (bound_claims_->count() >= hold_limit) {
    return done(failed(errc::overloaded,
                       "this client holds " + std::to_string(hold_limit) + " locks already"));
  }
  notifications_->wakeup_registry().add(claim->id, wakeup);
  arguments with = attempt_of(sql::key_of(claim->resource), *claim, notifications_->process());
  const time_point sent = reactor_->now();
  carrier_->send(statement::session_attempt, std::move(with), context,
                 [self = own(), claim, wakeup = std::move(wakeup), sent,
                  done = std::move(done)](result<sql::rows> said) mutable {
                   if (said) return self->granted(claim, wakeup, sent, *said, std::move(done));
                   if (said.error() != errc::unavailable)
                     self->notifications_->wakeup_registry().remove(claim->id);
                   done(tl::unexpected(std::move(said.error())));
                 });
}

void session_store::granted(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& holder,
                            time_point sent, const sql::rows& said,
                            spi::completion<spi::outcome> done) {
  auto answer = sql::to_outcome(said);
  if (answer && std::holds_alternative<spi::granted>(*answer)) {
    run_out_->prove(claim, sent);
    if (!bound_claims_->tie(life_of(said.front()), claim, holder,
                            [&] { done(std::move(answer)); })) {
      done(failed(errc::unavailable, "the connection has ended meanwhile"));
    }
    return;
  }
  if (is_turned_away(answer)) notifications_->wakeup_registry().remove(claim->id);
  done(std::move(answer));
}

void session_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  if (!usable()) return done(refusal());
  run_out_->forget(claim->id);
  arguments with;
  with.bytes(sql::key_of(claim->resource)).bytes(sql::bytes_of(claim->id)).number(0).home();
  carrier_->send(statement::session_leave, std::move(with), context,
                 [self = own(), id = claim->id, life = carrier_->home(), by = context.deadline,
                  done = std::move(done)](result<sql::rows> said) mutable {
                   // Without an answer in time it may still be carried out, and is asked for again.
                   const bool late = !said && self->reactor_->now() >= by;
                   const bool held = self->bound_claims_->untie(id, !late);
                   if (!said && held && !late) self->end_carrier(life);
                   self->notifications_->wakeup_registry().remove(id);
                   if (!said) return done(tl::unexpected(std::move(said.error())));
                   done(sql::to_departure(*said));
                 });
}

// A hold could not be given back: the server frees it, and all others, with the connection of that life.
void session_store::end_carrier(bound_claims::life life) {
  if (carrier_->home() == life) carrier_->reset();
}

void session_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                          spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(refusal());
  if (claims.empty()) return done(std::vector<spi::renewal>{});
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const auto& each : claims) {
    keys.push_back(sql::key_of(each->resource));
    ids.emplace_back(sql::bytes_of(each->id));
  }
  arguments with;
  with.list(keys).list(ids).home();
  const time_point sent = reactor_->now();
  carrier_->send(statement::session_renew, std::move(with), context.deadline,
                 [self = own(), claims = std::move(claims), sent,
                  done = std::move(done)](result<sql::rows> said) mutable {
                   if (!said) return done(tl::unexpected(std::move(said.error())));
                   self->renewed(claims, sent, *said, std::move(done));
                 });
}

void session_store::renewed(const std::vector<spi::claim_ptr>& claims, time_point sent,
                            const sql::rows& said,
                            spi::completion<std::vector<spi::renewal>> done) {
  auto answers = sql::to_renewals(said, claims.size());
  if (!answers) return done(tl::unexpected(std::move(answers.error())));
  std::vector<spi::claim_id> may_be_free;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    switch ((*answers)[i].state) {
      case spi::hold_state::renewed:
        run_out_->prove(claims[i], sent);
        break;
      case spi::hold_state::lost:
        let_go(claims[i]->id);
        break;
      case spi::hold_state::waiting:
        if (said[i].ends_with(" 1")) may_be_free.push_back(claims[i]->id);
        break;
      default:
        break;
    }
  }
  done(*std::move(answers));
  for (const spi::claim_id& each : may_be_free) {
    notifications_->wakeup_registry().notify({stores::push::kind::freed, each});
  }
}

void session_store::let_go(const spi::claim_id& claim) {
  const spi::claim_ptr held = bound_claims_->find(claim);
  if (held == nullptr) return;
  give_back(*held, duration{0});
}

// Nobody waits for the answer: if it fails the connection ends, and the lock with it.
void session_store::give_back(const spi::claim& claim, duration delay) {
  bound_claims_->untie(claim.id);
  arguments with;
  with.bytes(sql::key_of(claim.resource)).bytes(sql::bytes_of(claim.id));
  with.number(sql::microseconds(delay)).home();
  // Not sooner than the others end by themselves.
  const duration limit = bound_claims_->count() == 0 ? give_back_limit : sql::longest_belief;
  carrier_->send(statement::session_leave, std::move(with), reactor_->now() + limit,
                 [self = own(), life = carrier_->home()](const result<sql::rows>& said) {
                   if (!said) self->end_carrier(life);
                 });
}

}  // namespace

std::shared_ptr<spi::store> make_session_store(std::shared_ptr<spi::reactor> reactor,
                                               std::shared_ptr<const engine> of) {
  const auto made = std::make_shared<session_store>(std::move(reactor), std::move(of));
  made->open();
  return made;
}

}  // namespace holdfast::sql
