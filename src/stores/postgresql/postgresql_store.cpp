// How a store is made, and how a claim is asked for and left.
#include "stores/postgresql/postgresql_store.hpp"

#include "stores/postgresql/engine.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/statement.hpp"

#include <utility>
#include <vector>

namespace holdfast::postgresql {

postgresql_store::postgresql_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : lease_store(std::move(reactor), std::move(options)) {}

std::shared_ptr<postgresql_store> postgresql_store::make(std::shared_ptr<spi::reactor> reactor,
                                                         server_options options) {
  std::shared_ptr<postgresql_store> made(
      new postgresql_store(std::move(reactor), std::move(options)));
  std::vector<std::shared_ptr<connection>> command_connections;
  while (command_connections.size() < made->options_->connections) {
    command_connections.push_back(connection::make(made->net_, made->options_));
  }
  made->set_up(sql::fresh_process(*made->reactor_), std::move(command_connections));
  return made;
}

void postgresql_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                               const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  const std::string key = sql::key_of(claim->resource);
  notifications_->wakeup_registry().add(claim->id, std::move(wakeup));
  command_connection(key).send(
      statement::attempt,
      sql::attempt_arguments<arguments>(key, *claim, notifications_->process())
          .text(encoded_claim(*claim, notifications_->process())),
      context,
      [wakeup_registry = notifications_->shared_wakeups(), id = claim->id, ttl = claim->ttl,
       done = std::move(done)](result<sql::rows> rows) mutable {
        auto answer = rows ? sql::to_outcome(*rows, ttl)
                           : result<spi::outcome>(tl::unexpected(std::move(rows.error())));
        if (sql::is_turned_away(answer)) wakeup_registry->remove(id);
        done(std::move(answer));
      });
}

// Which fast path to look at first: one that fails only costs the next one time.
std::int64_t postgresql_store::fast_path(const spi::claim& claim) const {
  switch (notifications_->wakeup_registry().around(claim.id)) {
    case sql::contention::none:
      return sql::microseconds(claim.ttl);
    case sql::contention::some:
      return 0;
    case sql::contention::many:
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
  const int remember = !context.unanswered                                         ? 0
                       : notifications_->wakeup_registry().only_attempt(claim->id) ? 2
                                                                                   : 1;
  with.number(remember).number(context.unanswered ? sql::microseconds(claim->ttl)
                                                  : fast_path(*claim));
  ask<spi::departure>(
      command_connection(key), statement::leave, std::move(with), context,
      [wakeup_registry = notifications_->shared_wakeups(), id = claim->id,
       done = std::move(done)](result<spi::departure> answer) mutable {
        wakeup_registry->remove(id);
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
    return make_bound(std::move(reactor), *std::move(options));
  }
  return postgresql_store::make(std::move(reactor), *std::move(options));
}

}  // namespace holdfast::postgresql
