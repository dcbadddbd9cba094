// How a store is made, and how a claim is asked for and left.
#include "stores/mariadb/mariadb_store.hpp"

#include "stores/mariadb/engine.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/statement.hpp"

#include <utility>
#include <variant>
#include <vector>

namespace holdfast::mariadb {

namespace {

// The fast path answers with a number.
bool is_fast_answer(const sql::rows& said) {
  return said.size() == 1 && said.front().find_first_not_of("0123456789") == std::string::npos;
}

result<spi::outcome> outcome_of(const sql::rows& said, const spi::claim& claim) {
  if (!is_fast_answer(said)) return sql::to_outcome(said);
  return sql::to_outcome({fast_grant(std::stoull(said.front()), claim)}, claim.ttl);
}

// Granted, and nobody waits for it.
bool is_alone(const result<spi::outcome>& answer) {
  const auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
  return grant != nullptr && !grant->wanted && !grant->offer;
}

}  // namespace

mariadb_store::mariadb_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : lease_store(std::move(reactor), std::move(options)) {}

std::shared_ptr<mariadb_store> mariadb_store::make(std::shared_ptr<spi::reactor> reactor,
                                                   server_options options) {
  std::shared_ptr<mariadb_store> made(new mariadb_store(std::move(reactor), std::move(options)));
  const std::string process = sql::fresh_process(*made->reactor_);
  std::vector<std::shared_ptr<connection>> command_connections{
      engine::make_control_connection(made->net_, made->options_, process)};
  while (command_connections.size() < made->options_->connections) {
    command_connections.push_back(
        connection::make(made->net_, made->options_, {.fast_paths = true}));
  }
  made->set_up(process, std::move(command_connections));
  return made;
}

void mariadb_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  const std::string key = sql::key_of(claim->resource);
  notifications_->wakeup_registry().add(claim->id, std::move(wakeup));
  // Whoever has heard of others is beyond the fast path.
  std::string fast_path =
      notifications_->wakeup_registry().around(claim->id) == sql::contention::none
          ? fast_attempt(key, *claim, notifications_->process())
          : std::string();
  command_connection(key).send(
      {statement::attempt,
       sql::attempt_arguments<arguments>(key, *claim, notifications_->process()),
       std::move(fast_path)},
      context,
      [wakeup_registry = notifications_->shared_wakeups(), claim,
       done = std::move(done)](result<sql::rows> rows) mutable {
        auto answer = rows ? outcome_of(*rows, *claim)
                           : result<spi::outcome>(tl::unexpected(std::move(rows.error())));
        if (sql::is_turned_away(answer)) wakeup_registry->remove(claim->id);
        if (!is_alone(answer)) wakeup_registry->mark_contended(claim->id);
        done(std::move(answer));
      });
}

void mariadb_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim->id));
  with.flag(context.unanswered).number(sql::microseconds(claim->ttl));
  if (!usable()) return done(refusal());
  std::string fast_path = !context.unanswered && notifications_->wakeup_registry().around(
                                                     claim->id) == sql::contention::none
                              ? fast_leave(key, *claim)
                              : std::string();
  // Not before an attempt of its own that waits.
  const sql::terms until = context.unanswered ? context : sql::terms::ahead_of_others(context);
  command_connection(key).send({statement::leave, std::move(with), std::move(fast_path)}, until,
                               [wakeup_registry = notifications_->shared_wakeups(), id = claim->id,
                                done = std::move(done)](result<sql::rows> rows) mutable {
                                 wakeup_registry->remove(id);
                                 if (!rows) return done(tl::unexpected(std::move(rows.error())));
                                 if (is_fast_answer(*rows)) return done(spi::departure::was_holder);
                                 done(sql::to_departure(*rows));
                               });
}

result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses) {
  auto options = options_from(url);
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  if (options->strategy != sql::strategy::lease) {
    return make_bound(std::move(reactor), *std::move(options));
  }
  return mariadb_store::make(std::move(reactor), *std::move(options));
}

}  // namespace holdfast::mariadb
