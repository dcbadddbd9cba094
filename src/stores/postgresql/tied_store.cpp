// See the header.
#include "stores/postgresql/tied_store.hpp"

#include "stores/postgresql/doctor.hpp"
#include "stores/sql/names.hpp"

#include <utility>

namespace holdfast::postgresql {

namespace {

// Whoever was told to let go has this long; then its connection is ended.
constexpr duration letting_go = std::chrono::seconds(1);
constexpr duration between_looks = std::chrono::milliseconds(20);

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "postgresql";
  caps.expires = false;
  caps.fair = false;
  caps.permits = false;
  caps.change = false;
  caps.latches = false;
  return caps;
}

}  // namespace

tied_store::tied_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : reactor_(std::move(reactor)),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(capabilities()),
      net_(net::make_network(reactor_)) {}

void tied_store::set_up() {
  desk_ = connection::make(net_, options_, {.duty = duty::desk});
  hearing_ =
      hearing::make(net_, options_, desk_, [weak = weak_from_this()](const spi::claim_id& claim) {
        const auto self = weak.lock();
        if (self != nullptr && self->usable()) self->let_go(claim);
      });
  run_out_ = std::make_shared<sql::run_out>(reactor_,
                                            [weak = weak_from_this()](const spi::claim_ptr& claim) {
                                              const auto self = weak.lock();
                                              if (self != nullptr && self->usable())
                                                self->give_back(*claim, claim->lock_delay);
                                            });
  hearing_->start();
}

bool tied_store::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

tl::unexpected<error> tied_store::refusal() {
  return failure(errc::cancelled, "postgresql: closed or forked");
}

std::int64_t tied_store::strategy_number() const noexcept {
  return options_->strategy == strategy::session ? 1 : 2;
}

tl::unexpected<error> tied_store::lacks(const char* what) const {
  return failure(errc::unsupported,
                 "postgresql, strategy=" + std::string(name_of(options_->strategy)) + " has no " +
                     what + "; strategy=lease has");
}

result<void> tied_store::fits(const spi::claim& claim) const {
  if (claim.mode == spi::mode::permit) return lacks("permits");
  if (claim.fair) return lacks("order");
  if (claim.proposed_fence) return lacks("votes");
  return {};
}

template <class T, class Convert>
void tied_store::ask(statement which, arguments&& with, const spi::op_context& context,
                     spi::completion<T> done, Convert convert) {
  if (!usable()) return done(refusal());
  desk_->send(which, std::move(with), context.deadline,
              [done = std::move(done), convert](result<sql::rows> rows) mutable {
                if (!rows) return done(tl::unexpected(std::move(rows.error())));
                done(convert(*rows));
              });
}

// Never asked for: whoever is blocked and wants to wait has a place in line.
void tied_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                       spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void tied_store::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                        spi::completion<spi::granted> done) {
  done(lacks("change of modes"));
}

void tied_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                         spi::completion<spi::resource_state> done) {
  arguments with;
  with.bytes(sql::key_of(resource)).number(strategy_number());
  ask(statement::tied_inspect, std::move(with), context, std::move(done), sql::to_state);
}

void tied_store::list(const std::string& space, const std::string& prefix,
                      const spi::op_context& context,
                      spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = sql::key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all that begin like this come before it.
  with.bytes(first).bytes(first + '\xff').number(strategy_number());
  ask(statement::tied_list, std::move(with), context, std::move(done), sql::to_summaries);
}

// By force: answered when they have let go, or when their connections were ended.
struct tied_store::forcing {
  std::string key;
  time_point deadline;
  time_point patience;
  std::vector<spi::holder> taken;
  spi::completion<std::vector<spi::holder>> done;
};

void tied_store::revoke(const spi::resource_id& resource, spi::revocation how,
                        const std::string& claim, const spi::op_context& context,
                        spi::completion<std::vector<spi::holder>> done) {
  auto what = std::make_shared<forcing>();
  what->key = sql::key_of(resource);
  what->deadline = context.deadline;
  const bool force = how == spi::revocation::force;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(force).text(claim);
  what->done = std::move(done);
  ask<std::vector<spi::holder>>(
      statement::tied_revoke, std::move(with), context,
      [self = shared_from_this(), what, force](result<std::vector<spi::holder>> taken) {
        if (!taken || taken->empty() || !force) return what->done(std::move(taken));
        what->taken = *std::move(taken);
        const time_point now = self->reactor_->now();
        what->patience = now + std::min(letting_go, (what->deadline - now) / 2);
        self->await_forced(what);
      },
      sql::to_holders);
}

void tied_store::await_forced(const std::shared_ptr<forcing>& what) {
  const bool finish = reactor_->now() >= what->patience;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(finish);
  if (!usable()) return what->done(refusal());
  desk_->send(statement::tied_forced, std::move(with), what->deadline,
              [self = shared_from_this(), what, finish](const result<sql::rows>& rows) {
                if (!rows) return what->done(tl::unexpected(rows.error()));
                const bool gone = rows->size() == 1 && rows->front() == "0";
                if (gone || finish) return what->done(std::move(what->taken));
                self->reactor_->at(self->reactor_->now() + between_looks,
                                   [self, what] { self->await_forced(what); });
              });
}

result<std::unique_ptr<spi::subscription>> tied_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return hearing_->observe(resource, std::move(sink));
}

void tied_store::change_latch(const spi::resource_id&, const spi::latch_change&,
                              const spi::op_context&, spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

void tied_store::read_latch(const spi::resource_id&, const spi::op_context&,
                            spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

result<std::unique_ptr<spi::subscription>> tied_store::watch_latch(const spi::resource_id&,
                                                                   spi::latch_watch) {
  return lacks("latches");
}

void tied_store::probe(const spi::op_context& context,
                       spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(refusal());
  // The deadline is the caller's; what is left after the wait for wake-ups is for the questions.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  hearing_->when_open(half, [self = shared_from_this(), deadline = context.deadline,
                             done = std::move(done)](const result<void>& open) mutable {
    self->desk_->send(
        statement::examine, {}, deadline,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> rows) mutable {
          if (!rows) return done(refused(rows.error(), *self->options_));
          done(examined(*rows, *self->options_, hears));
        });
  });
}

void tied_store::close() noexcept {
  if (guard_.forked() || closed_.exchange(true, std::memory_order_acq_rel)) return;
  run_out_->close();
  close_carriers();
  desk_->close();
  hearing_->close();
}

}  // namespace holdfast::postgresql
