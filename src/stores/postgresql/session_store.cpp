// See the header.
#include "stores/postgresql/session_store.hpp"

#include "stores/sql/names.hpp"
#include "stores/sql/words.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::postgresql {

namespace {

constexpr duration give_back_limit = std::chrono::seconds(5);  // for one call

arguments attempt_of(const std::string& key, const spi::claim& claim, const std::string& process) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode)).flag(claim.queued);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(std::max(claim.fence_block, 1U)).bytes(claim.payload).home();
  return with;
}

// The last word of a grant: the backend that has the lock.
sql::ties::life life_of(const std::string& grant) {
  const std::size_t space = grant.rfind(' ');
  sql::ties::life life = 0;
  if (space != std::string::npos) {
    std::from_chars(grant.data() + space + 1, grant.data() + grant.size(), life);
  }
  return life;
}

}  // namespace

session_store::session_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : tied_store(std::move(reactor), std::move(options)) {}

std::shared_ptr<session_store> session_store::make(std::shared_ptr<spi::reactor> reactor,
                                                   server_options options) {
  std::shared_ptr<session_store> made(new session_store(std::move(reactor), std::move(options)));
  made->set_up();
  const std::weak_ptr<session_store> weak =
      std::static_pointer_cast<session_store>(made->shared_from_this());
  connection::events tell;
  tell.opened = [weak] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->ties_->begin(self->carrier_->home());
    self->hearing_->bells().ring_all();  // who waited in the former session
  };
  tell.ended = [ties = made->ties_](const error& why) { ties->end(why); };
  // Nothing is lost with a connection that carries nothing.
  tell.silence = [ties = made->ties_] {
    return ties->count() == 0 ? connection::silence_limit : sql::longest_belief;
  };
  manner how{.duty = duty::session};
  how.opening = "SELECT @.begin_1('" + made->hearing_->process() + "')";
  made->carrier_ = connection::make(made->net_, made->options_, std::move(how), std::move(tell));
  made->carrier_->start();
  return made;
}

session_store::~session_store() {
  if (!guard_.forked()) close();
}

void session_store::close_carriers() noexcept { carrier_->close(); }

void session_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  if (auto fine = fits(*claim); !fine) return done(tl::unexpected(std::move(fine.error())));
  if (ties_->count() >= hold_limit) {
    return done(failure(errc::overloaded, "postgresql: this client holds " +
                                              std::to_string(hold_limit) + " locks already"));
  }
  hearing_->bells().hang(claim->id, wakeup);
  arguments with = attempt_of(sql::key_of(claim->resource), *claim, hearing_->process());
  const time_point sent = reactor_->now();
  carrier_->send(
      statement::session_attempt, std::move(with), context.deadline,
      [self = std::static_pointer_cast<session_store>(shared_from_this()), claim,
       wakeup = std::move(wakeup), sent, done = std::move(done)](result<sql::rows> rows) mutable {
        if (rows) return self->granted(claim, wakeup, sent, *rows, std::move(done));
        if (rows.error() != errc::unavailable) self->hearing_->bells().remove(claim->id);
        done(tl::unexpected(std::move(rows.error())));
      });
}

void session_store::granted(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& holder,
                            time_point sent, const sql::rows& rows,
                            spi::completion<spi::outcome> done) {
  auto answer = sql::to_outcome(rows);
  if (answer && std::holds_alternative<spi::granted>(*answer)) {
    run_out_->prove(claim, sent);
    if (!ties_->tie(life_of(rows.front()), claim, holder, [&] { done(std::move(answer)); })) {
      done(failure(errc::unavailable, "postgresql: the connection has ended meanwhile"));
    }
    return;
  }
  const auto* blocked = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
  const bool over =
      answer ? blocked != nullptr && !blocked->queued : answer.error() != errc::unavailable;
  if (over) hearing_->bells().remove(claim->id);
  done(std::move(answer));
}

void session_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  if (!usable()) return done(refusal());
  run_out_->forget(claim->id);
  arguments with;
  with.bytes(sql::key_of(claim->resource)).bytes(sql::bytes_of(claim->id)).number(0).home();
  carrier_->send(statement::session_leave, std::move(with), context.deadline,
                 [self = std::static_pointer_cast<session_store>(shared_from_this()),
                  id = claim->id, done = std::move(done)](result<sql::rows> rows) mutable {
                   self->ties_->untie(id);
                   self->hearing_->bells().remove(id);
                   if (!rows) return done(tl::unexpected(std::move(rows.error())));
                   done(sql::to_departure(*rows));
                 });
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
  carrier_->send(
      statement::session_renew, std::move(with), context.deadline,
      [self = std::static_pointer_cast<session_store>(shared_from_this()),
       claims = std::move(claims), sent, done = std::move(done)](result<sql::rows> rows) mutable {
        if (!rows) return done(tl::unexpected(std::move(rows.error())));
        self->renewed(claims, sent, *rows, std::move(done));
      });
}

void session_store::renewed(const std::vector<spi::claim_ptr>& claims, time_point sent,
                            const sql::rows& rows,
                            spi::completion<std::vector<spi::renewal>> done) {
  auto answers = sql::to_renewals(rows, claims.size());
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
        if (rows[i].ends_with(" 1")) may_be_free.push_back(claims[i]->id);
        break;
      default:
        break;
    }
  }
  done(*std::move(answers));
  for (const spi::claim_id& each : may_be_free) {
    sql::push freed;
    freed.claim = each;
    hearing_->bells().ring(freed);
  }
}

void session_store::let_go(const spi::claim_id& claim) {
  const spi::claim_ptr held = ties_->find(claim);
  if (held == nullptr) return;
  give_back(*held, duration{0});
}

// Nobody waits for the answer: where it fails the connection ends, and the lock with it.
void session_store::give_back(const spi::claim& claim, duration delay) {
  ties_->untie(claim.id);
  arguments with;
  with.bytes(sql::key_of(claim.resource)).bytes(sql::bytes_of(claim.id));
  with.number(sql::microseconds(delay)).home();
  carrier_->send(statement::session_leave, std::move(with), reactor_->now() + give_back_limit,
                 [](const result<sql::rows>&) {});
}

}  // namespace holdfast::postgresql
