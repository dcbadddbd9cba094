#include "stores/sql/server_store.hpp"

#include <utility>

namespace holdfast::sql {

server_store::server_store(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<const engine> of,
                           spi::caps caps)
    : reactor_(std::move(reactor)),
      engine_(std::move(of)),
      caps_(std::move(caps)),
      net_(net::make_network(reactor_)) {}

bool server_store::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

tl::unexpected<error> server_store::refusal() const {
  return failed(errc::cancelled, "closed or forked");
}

bool server_store::begin_close() noexcept {
  return !guard_.forked() && !closed_.exchange(true, std::memory_order_acq_rel);
}

// Never called: a blocked claim that wants to wait has a place in the queue.
void server_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

result<std::unique_ptr<spi::subscription>> server_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return notifications_->observe(resource, std::move(sink));
}

void server_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(refusal());
  // The deadline is the caller's; what is left after the wait for wake-ups is for the queries.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  notifications_->when_open(half, [self = shared_from_this(), until = net::patience(context),
                                   done = std::move(done)](const result<void>& open) mutable {
    self->control_->send(
        statement::examine, {}, until,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> said) mutable {
          if (!said) return done(self->engine_->refused(said.error()));
          done(self->engine_->examined(*said, hears));
        });
  });
}

std::shared_ptr<spi::store> make_store(std::shared_ptr<spi::reactor> reactor,
                                       std::shared_ptr<const engine> of) {
  switch (of->options().strategy) {
    case strategy::lease:
      return make_lease_store(std::move(reactor), std::move(of));
    case strategy::session:
      return make_session_store(std::move(reactor), std::move(of));
    case strategy::row:
      break;
  }
  return make_row_store(std::move(reactor), std::move(of));
}

}  // namespace holdfast::sql
