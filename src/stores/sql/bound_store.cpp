#include "stores/sql/bound_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sql {

spi::caps bound_store::capabilities(const std::string& engine) {
  spi::caps caps;
  caps.engine = engine;
  caps.expires = false;
  caps.fair = false;
  caps.permits = false;
  caps.supports_mode_change = false;
  caps.latches = false;
  return caps;
}

bound_store::bound_store(std::shared_ptr<spi::reactor> reactor,
                         const std::shared_ptr<const engine>& of)
    : server_store(std::move(reactor), of, capabilities(of->name)) {}

void bound_store::set_up() {
  const std::string process = fresh_process(*reactor_);
  const std::weak_ptr<bound_store> weak = own();
  control_ = engine_->make_control_connection(net_, process);
  notifications_ =
      notifications::make(net_, *engine_, process, control_, [weak](const spi::claim_id& claim) {
        const auto self = weak.lock();
        if (self != nullptr && self->usable()) self->let_go(claim);
      });
  run_out_ = std::make_shared<run_out>(reactor_, [weak](const spi::claim_ptr& claim) {
    const auto self = weak.lock();
    if (self != nullptr && self->usable()) self->give_back(*claim, claim->lock_delay);
  });
  notifications_->start();
}

std::int64_t bound_store::strategy_number() const noexcept {
  return engine_->options().strategy == strategy::session ? 1 : 2;
}

tl::unexpected<error> bound_store::lacks(const char* what) const {
  return failure(errc::unsupported,
                 engine_->name + ", strategy=" + std::string(name_of(engine_->options().strategy)) +
                     " has no " + what + "; strategy=lease has");
}

result<void> bound_store::fits(const spi::claim& claim) const {
  if (claim.mode == spi::mode::permit) return lacks("permits");
  if (claim.fair) return lacks("order");
  if (claim.proposed_fence) return lacks("votes");
  return check_name(claim.resource);
}

void bound_store::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                         spi::completion<spi::granted> done) {
  done(lacks("change of modes"));
}

void bound_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                          spi::completion<spi::resource_state> done) {
  if (auto fine = check_name(resource); !fine) return done(tl::unexpected(std::move(fine.error())));
  arguments with;
  with.bytes(key_of(resource)).number(strategy_number());
  ask(*control_, statement::bound_inspect, std::move(with), context, std::move(done),
      [](const rows& said) {
        auto state = to_state(said);
        if (!state) return state;
        for (spi::holder& each : state->holders) each.by_session = !each.remaining;
        return state;
      });
}

void bound_store::list(const std::string& space, const std::string& prefix,
                       const spi::op_context& context,
                       spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all names with this prefix come before it.
  with.bytes(first).bytes(first + '\xff').number(strategy_number());
  ask(*control_, statement::bound_list, std::move(with), context, std::move(done), to_summaries);
}

// By force: answered when the holders have let go, or when their connections were ended.
struct bound_store::forcing {
  spi::resource_id resource;
  std::string key;
  time_point deadline;
  time_point patience;
  std::vector<spi::holder> taken;
  spi::completion<std::vector<spi::holder>> done;
};

void bound_store::revoke(const spi::resource_id& resource, spi::revocation how,
                         const std::string& claim, const spi::op_context& context,
                         spi::completion<std::vector<spi::holder>> done) {
  auto what = std::make_shared<forcing>();
  what->resource = resource;
  what->key = key_of(resource);
  what->deadline = context.deadline;
  const bool force = how == spi::revocation::force;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(force).text(claim);
  what->done = std::move(done);
  ask<std::vector<spi::holder>>(
      *control_, statement::bound_revoke, std::move(with), context,
      [self = own(), what, force, claim](result<std::vector<spi::holder>> taken) {
        if (!taken) return what->done(std::move(taken));
        if (taken->empty()) return self->look_outside(what, claim);
        for (spi::holder& each : *taken) each.by_session = !each.remaining;
        if (!force) return what->done(std::move(taken));
        what->taken = *std::move(taken);
        const time_point now = self->reactor_->now();
        what->patience = now + std::min(letting_go, (what->deadline - now) / 2);
        self->await_forced(what);
      },
      to_holders);
}

void bound_store::look_outside(const std::shared_ptr<forcing>& what, const std::string& claim) {
  spi::op_context context;
  context.deadline = what->deadline;
  inspect(
      what->resource, context,
      [what, claim, engine = engine_](const result<spi::resource_state>& state) {
        if (!state) return what->done(tl::unexpected(state.error()));
        std::string pids;
        std::string ending;
        for (const spi::holder& each : state->holders) {
          constexpr std::string_view outside = "pid:";
          if (!each.claim.starts_with(outside) || (!claim.empty() && each.claim != claim)) continue;
          const std::string pid = each.claim.substr(outside.size());
          pids += (pids.empty() ? "" : ", ") + pid;
          ending += (ending.empty() ? "" : "; ") + engine->ending(pid);
        }
        if (pids.empty()) return what->done(std::vector<spi::holder>{});
        what->done(failure(errc::unsupported, "held outside holdfast by session " + pids +
                                                  ", which only the server can end: " + ending));
      });
}

void bound_store::await_forced(const std::shared_ptr<forcing>& what) {
  const bool finish = reactor_->now() >= what->patience;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(finish);
  if (!usable()) return what->done(refusal());
  control_->send(statement::bound_forced, std::move(with), what->deadline,
                 [self = own(), what, finish](const result<sql::rows>& said) {
                   if (!said) return what->done(tl::unexpected(said.error()));
                   const bool gone = said->size() == 1 && said->front() == "0";
                   if (gone || finish) return what->done(std::move(what->taken));
                   self->reactor_->at(self->reactor_->now() + between_looks,
                                      [self, what] { self->await_forced(what); });
                 });
}

void bound_store::change_latch(const spi::resource_id&, const spi::latch_change&,
                               const spi::op_context&, spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

void bound_store::read_latch(const spi::resource_id&, const spi::op_context&,
                             spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

result<std::unique_ptr<spi::subscription>> bound_store::watch_latch(const spi::resource_id&,
                                                                    spi::latch_watch) {
  return lacks("latches");
}

void bound_store::close() noexcept {
  if (!begin_close()) return;
  run_out_->close();
  close_carriers();
  control_->close();
  notifications_->close();
}

}  // namespace holdfast::sql
