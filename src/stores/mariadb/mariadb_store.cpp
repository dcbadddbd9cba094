// The store's life, and its verbs: each a call of a stored procedure.
#include "stores/mariadb/mariadb_store.hpp"

#include "stores/mariadb/tied.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

namespace holdfast::mariadb {

namespace {

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "mariadb";
  return caps;
}

// The short way answers with a number.
bool is_short(const sql::rows& said) {
  return said.size() == 1 && said.front().find_first_not_of("0123456789") == std::string::npos;
}

result<spi::outcome> outcome_of(const sql::rows& said, const spi::claim& claim) {
  if (!is_short(said)) return sql::to_outcome(said);
  return sql::to_outcome({short_grant(std::stoull(said.front()), claim)});
}

// Granted, and nobody waits for it.
bool is_alone(const result<spi::outcome>& answer) {
  const auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
  return grant != nullptr && !grant->wanted && !grant->offer;
}

constexpr duration default_latch_life = std::chrono::hours(24);

tl::unexpected<error> refusal() { return failure(errc::cancelled, "mariadb: closed or forked"); }

}  // namespace

mariadb_store::mariadb_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : reactor_(std::move(reactor)),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(capabilities()),
      net_(net::make_network(reactor_)) {}

std::shared_ptr<mariadb_store> mariadb_store::make(std::shared_ptr<spi::reactor> reactor,
                                                   server_options options) {
  std::shared_ptr<mariadb_store> made(new mariadb_store(std::move(reactor), std::move(options)));
  const std::string process = sql::fresh_process(*made->reactor_);
  made->connections_.push_back(engine::make_desk(made->net_, made->options_, process));
  while (made->connections_.size() < made->options_->connections) {
    made->connections_.push_back(
        connection::make(made->net_, made->options_, {.short_ways = true}));
  }
  made->hearing_ =
      sql::hearing<engine>::make(made->net_, made->options_, process, made->connections_.front());
  for (std::size_t i = 1; i < made->connections_.size(); ++i) {
    made->hearing_->follow(*made->connections_[i]);
  }
  made->hearing_->start();
  return made;
}

mariadb_store::~mariadb_store() {
  if (!guard_.forked()) close();
}

bool mariadb_store::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

connection& mariadb_store::road(const std::string& key) const {
  return *connections_[std::hash<std::string>{}(key) % connections_.size()];
}

template <class T, class Convert>
void mariadb_store::call(statement which, const std::string& key, const arguments& with,
                         const spi::op_context& context, spi::completion<T> done, Convert convert) {
  if (!usable()) return done(refusal());
  road(key).send(which, with, context.deadline,
                 [done = std::move(done), convert](result<sql::rows> rows) mutable {
                   if (!rows) return done(tl::unexpected(std::move(rows.error())));
                   done(convert(*rows));
                 });
}

void mariadb_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  const std::string key = sql::key_of(claim->resource);
  hearing_->bells().hang(claim->id, std::move(wakeup));
  // Whoever has heard of others is beyond the short way.
  std::string shorter = hearing_->bells().undisturbed(claim->id)
                            ? short_attempt(key, *claim, hearing_->process())
                            : std::string();
  road(key).send(std::move(shorter), statement::attempt,
                 attempt_arguments(key, *claim, hearing_->process()), context.deadline,
                 [bells = hearing_->shared_bells(), claim,
                  done = std::move(done)](result<sql::rows> rows) mutable {
                   auto answer =
                       rows ? outcome_of(*rows, *claim)
                            : result<spi::outcome>(tl::unexpected(std::move(rows.error())));
                   if (sql::is_turned_away(answer)) bells->remove(claim->id);
                   if (!is_alone(answer)) bells->disturb(claim->id);
                   done(std::move(answer));
                 });
}

// Never asked for: whoever is blocked and wants to wait has a place in line.
void mariadb_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                          spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void mariadb_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim->id));
  with.flag(context.unanswered).number(sql::microseconds(claim->ttl));
  if (!usable()) return done(refusal());
  std::string shorter = !context.unanswered && hearing_->bells().undisturbed(claim->id)
                            ? short_leave(key, *claim)
                            : std::string();
  road(key).send(std::move(shorter), statement::leave, with, context.deadline,
                 [bells = hearing_->shared_bells(), id = claim->id,
                  done = std::move(done)](result<sql::rows> rows) mutable {
                   bells->remove(id);
                   if (!rows) return done(tl::unexpected(std::move(rows.error())));
                   if (is_short(*rows)) return done(spi::departure::was_holder);
                   done(sql::to_departure(*rows));
                 });
}

void mariadb_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                           spi::completion<spi::granted> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim->id)).bytes(hearing_->process());
  with.number(static_cast<std::int64_t>(to));
  call(statement::change, key, with, context, std::move(done), sql::to_granted);
}

void mariadb_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                            spi::completion<spi::resource_state> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key);
  call(statement::inspect, key, with, context, std::move(done), sql::to_state);
}

void mariadb_store::list(const std::string& space, const std::string& prefix,
                         const spi::op_context& context,
                         spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = sql::key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all that begin like this come before it.
  with.bytes(first).bytes(first + '\xff');
  call(statement::list, first, with, context, std::move(done), sql::to_summaries);
}

void mariadb_store::revoke(const spi::resource_id& resource, spi::revocation how,
                           const std::string& claim, const spi::op_context& context,
                           spi::completion<std::vector<spi::holder>> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key).flag(how == spi::revocation::force).bytes(claim);
  call(statement::revoke, key, with, context, std::move(done), sql::to_holders);
}

void mariadb_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                 const spi::op_context& context,
                                 spi::completion<spi::latch_state> done) {
  const std::string key = sql::key_of(resource);
  const duration life = change.life > duration{0} ? change.life : default_latch_life;
  arguments with;
  with.bytes(key).flag(change.what == spi::latch_change::kind::set);
  with.number(static_cast<std::int32_t>(std::min<std::uint32_t>(change.count, INT32_MAX)));
  with.bytes(sql::bytes_of(change.id)).number(sql::microseconds(life));
  call(statement::change_latch, key, with, context, std::move(done), sql::to_latch);
}

void mariadb_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                               spi::completion<spi::latch_state> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key);
  call(statement::read_latch, key, with, context, std::move(done), sql::to_latch);
}

result<std::unique_ptr<spi::subscription>> mariadb_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return hearing_->observe(resource, std::move(sink));
}

result<std::unique_ptr<spi::subscription>> mariadb_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (!usable()) return refusal();
  return hearing_->watch_latch(resource, std::move(on_change));
}

void mariadb_store::close() noexcept {
  if (guard_.forked() || closed_.exchange(true, std::memory_order_acq_rel)) return;
  for (const auto& each : connections_) each->close();
  hearing_->close();
}

result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses) {
  auto options = options_from(url);
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  if (options->strategy != sql::strategy::lease) {
    return make_tied(std::move(reactor), *std::move(options));
  }
  return mariadb_store::make(std::move(reactor), *std::move(options));
}

}  // namespace holdfast::mariadb
