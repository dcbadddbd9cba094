// The store's life, and its verbs: each a call of a stored function.
#include "stores/postgresql/postgresql_store.hpp"

#include "stores/postgresql/calls.hpp"
#include "stores/postgresql/tied.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace holdfast::postgresql {

namespace {

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "postgresql";
  return caps;
}

constexpr duration default_latch_life = std::chrono::hours(24);

tl::unexpected<error> refusal() { return failure(errc::cancelled, "postgresql: closed or forked"); }

}  // namespace

postgresql_store::postgresql_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : reactor_(std::move(reactor)),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(capabilities()),
      net_(net::make_network(reactor_)) {}

std::shared_ptr<postgresql_store> postgresql_store::make(std::shared_ptr<spi::reactor> reactor,
                                                         server_options options) {
  std::shared_ptr<postgresql_store> made(
      new postgresql_store(std::move(reactor), std::move(options)));
  for (std::size_t i = 0; i < made->options_->connections; ++i) {
    made->connections_.push_back(connection::make(made->net_, made->options_));
  }
  made->hearing_ = sql::hearing<engine>::make(
      made->net_, made->options_, sql::fresh_process(*made->reactor_), made->connections_.front());
  for (std::size_t i = 1; i < made->connections_.size(); ++i) {
    made->hearing_->follow(*made->connections_[i]);
  }
  // The first lock must not wait for a handshake that could have been made before.
  made->connections_.front()->start();
  made->hearing_->start();
  return made;
}

postgresql_store::~postgresql_store() {
  if (!guard_.forked()) close();
}

bool postgresql_store::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

connection& postgresql_store::road(const std::string& key) const {
  return *connections_[std::hash<std::string>{}(key) % connections_.size()];
}

template <class T, class Convert>
void postgresql_store::call(statement which, const std::string& key, arguments&& with,
                            const spi::op_context& context, spi::completion<T> done,
                            Convert convert) {
  if (!usable()) return done(refusal());
  road(key).send(which, std::move(with), context.deadline,
                 [done = std::move(done), convert](result<sql::rows> rows) mutable {
                   if (!rows) return done(tl::unexpected(std::move(rows.error())));
                   done(convert(*rows));
                 });
}

void postgresql_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                               const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  const std::string key = sql::key_of(claim->resource);
  hearing_->bells().hang(claim->id, std::move(wakeup));
  road(key).send(
      statement::attempt, attempt_arguments(key, *claim, hearing_->process()), context.deadline,
      [bells = hearing_->shared_bells(), id = claim->id,
       done = std::move(done)](result<sql::rows> rows) mutable {
        auto answer = rows ? sql::to_outcome(*rows)
                           : result<spi::outcome>(tl::unexpected(std::move(rows.error())));
        if (sql::is_turned_away(answer)) bells->remove(id);
        done(std::move(answer));
      });
}

// Never asked for: whoever is blocked and wants to wait has a place in line.
void postgresql_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                             spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void postgresql_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                             spi::completion<spi::departure> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim->id));
  with.flag(context.unanswered).number(sql::microseconds(claim->ttl));
  call<spi::departure>(
      statement::leave, key, std::move(with), context,
      [bells = hearing_->shared_bells(), id = claim->id,
       done = std::move(done)](result<spi::departure> answer) mutable {
        bells->remove(id);
        done(std::move(answer));
      },
      sql::to_departure);
}

void postgresql_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                              spi::completion<spi::granted> done) {
  const std::string key = sql::key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim->id)).text(hearing_->process());
  with.number(static_cast<std::int64_t>(to));
  call(statement::change, key, std::move(with), context, std::move(done), sql::to_granted);
}

void postgresql_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                               spi::completion<spi::resource_state> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key);
  call(statement::inspect, key, std::move(with), context, std::move(done), sql::to_state);
}

void postgresql_store::list(const std::string& space, const std::string& prefix,
                            const spi::op_context& context,
                            spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = sql::key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all that begin like this come before it.
  with.bytes(first).bytes(first + '\xff');
  call(statement::list, first, std::move(with), context, std::move(done), sql::to_summaries);
}

void postgresql_store::revoke(const spi::resource_id& resource, spi::revocation how,
                              const std::string& claim, const spi::op_context& context,
                              spi::completion<std::vector<spi::holder>> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key).flag(how == spi::revocation::force).text(claim);
  call(statement::revoke, key, std::move(with), context, std::move(done), sql::to_holders);
}

void postgresql_store::change_latch(const spi::resource_id& resource,
                                    const spi::latch_change& change, const spi::op_context& context,
                                    spi::completion<spi::latch_state> done) {
  const std::string key = sql::key_of(resource);
  const duration life = change.life > duration{0} ? change.life : default_latch_life;
  arguments with;
  with.bytes(key).flag(change.what == spi::latch_change::kind::set);
  with.number(static_cast<std::int32_t>(std::min<std::uint32_t>(change.count, INT32_MAX)));
  with.bytes(sql::bytes_of(change.id)).number(sql::microseconds(life));
  call(statement::change_latch, key, std::move(with), context, std::move(done), sql::to_latch);
}

void postgresql_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                                  spi::completion<spi::latch_state> done) {
  const std::string key = sql::key_of(resource);
  arguments with;
  with.bytes(key);
  call(statement::read_latch, key, std::move(with), context, std::move(done), sql::to_latch);
}

result<std::unique_ptr<spi::subscription>> postgresql_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return hearing_->observe(resource, std::move(sink));
}

result<std::unique_ptr<spi::subscription>> postgresql_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (!usable()) return refusal();
  return hearing_->watch_latch(resource, std::move(on_change));
}

void postgresql_store::close() noexcept {
  if (guard_.forked() || closed_.exchange(true, std::memory_order_acq_rel)) return;
  for (const auto& each : connections_) each->close();
  hearing_->close();
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
