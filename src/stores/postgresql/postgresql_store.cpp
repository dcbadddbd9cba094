// How a store is made, and how a claim is asked for and left.
#include "stores/postgresql/postgresql_store.hpp"

#include "stores/postgresql/doctor.hpp"
#include "stores/postgresql/ticket.hpp"
#include "stores/postgresql/tied.hpp"
#include "stores/sql/attempt_arguments.hpp"
#include "stores/sql/names.hpp"

#include <utility>
#include <vector>

namespace holdfast::postgresql {

postgresql_store::postgresql_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : lease_store(std::move(reactor), std::move(options)) {}

std::shared_ptr<postgresql_store> postgresql_store::make(std::shared_ptr<spi::reactor> reactor,
                                                         server_options options) {
  std::shared_ptr<postgresql_store> made(
      new postgresql_store(std::move(reactor), std::move(options)));
  std::vector<std::shared_ptr<connection>> roads;
  while (roads.size() < made->options_->connections) {
    roads.push_back(connection::make(made->net_, made->options_));
  }
  made->set_up(sql::fresh_process(*made->reactor_), std::move(roads));
  return made;
}

void postgresql_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                               const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  const std::string key = sql::key_of(claim->resource);
  hearing_->bells().hang(claim->id, std::move(wakeup));
  road(key).send(statement::attempt,
                 sql::attempt_arguments<arguments>(key, *claim, hearing_->process())
                     .text(ticket(*claim, hearing_->process())),
                 context,
                 [bells = hearing_->shared_bells(), id = claim->id, ttl = claim->ttl,
                  done = std::move(done)](result<sql::rows> rows) mutable {
                   auto answer =
                       rows ? sql::to_outcome(*rows, ttl)
                            : result<spi::outcome>(tl::unexpected(std::move(rows.error())));
                   if (sql::is_turned_away(answer)) bells->remove(id);
                   done(std::move(answer));
                 });
}

// Which short way to look at first: in vain, each would only cost the next one time.
std::int64_t postgresql_store::haste(const spi::claim& claim) const {
  switch (hearing_->bells().around(claim.id)) {
    case sql::bells::company::none:
      return sql::microseconds(claim.ttl);
    case sql::bells::company::some:
      return 0;
    case sql::bells::company::crowd:
      return -1;
  }
  return 0;
}

void postgresql_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                             spi::completion<spi::departure> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).text(sql::to_hex(sql::bytes_of(claim->id)));
  // A connection sends nothing twice: where its only attempt is unanswered, but the claim is there, it has
  // arrived, and cannot come late.
  const int remember = !context.unanswered ? 0 : hearing_->bells().only_attempt(claim->id) ? 2 : 1;
  with.number(remember).number(context.unanswered ? sql::microseconds(claim->ttl) : haste(*claim));
  ask<spi::departure>(
      road(key), statement::leave, std::move(with), context,
      [bells = hearing_->shared_bells(), id = claim->id,
       done = std::move(done)](result<spi::departure> answer) mutable {
        bells->remove(id);
        done(std::move(answer));
      },
      sql::to_departure);
}

result<std::shared_ptr<spi::store>> open_postgresql(const spi::url& url,
                                                    std::shared_ptr<spi::reactor> reactor,
                                                    const net::backoff_limits& pauses) {
  auto options = options_from(url);
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  if (options->strategy != sql::strategy::lease) {
    return make_tied(std::move(reactor), *std::move(options));
  }
  return postgresql_store::make(std::move(reactor), *std::move(options));
}

}  // namespace holdfast::postgresql
