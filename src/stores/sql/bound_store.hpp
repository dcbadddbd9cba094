// What strategy=session and strategy=row have in common: their holds are bound to connections. What
// people see and do goes over a control connection of its own, so that no look delays a sign of life; what such locks
// cannot have is refused.
#pragma once

#include "stores/sql/names.hpp"
#include "stores/sql/options.hpp"
#include "stores/sql/run_out.hpp"
#include "stores/sql/server_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe.
//
// Shutdown: verbs are refused; calls under way are answered; the connections end, and the holds with
// them; nothing is heard any more.
template <class Engine>
class bound_store : public server_store<Engine> {
 protected:
  using base = server_store<Engine>;
  using base::control_;
  using base::guard_;
  using base::net_;
  using base::notifications_;
  using base::options_;
  using base::reactor_;
  using base::refusal;
  using base::usable;

 public:
  using typename base::arguments;
  using typename base::connection;
  using typename base::server_options;
  using typename base::statement;

  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) final;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) final;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) final;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context, spi::completion<std::vector<spi::holder>> done) final;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context, spi::completion<spi::latch_state> done) final;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) final;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) final;
  void close() noexcept final;

 protected:
  bound_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  // Once, when the store is shared.
  void set_up();

  // A hold was taken away by force: its connection gives it back.
  virtual void let_go(const spi::claim_id& claim) = 0;
  // Nobody waits for the answer. `delay`: it ended abnormally, and its name stays blocked for so long.
  virtual void give_back(const spi::claim& claim, duration delay) = 0;
  // The connections that carry holds.
  virtual void close_carriers() noexcept = 0;

  // The permits and orders that these locks do not have.
  [[nodiscard]] result<void> fits(const spi::claim& claim) const;
  [[nodiscard]] result<void> check_name(const spi::resource_id& resource) const {
    return options_->strategy == strategy::session ? Engine::check_name(resource) : result<void>();
  }
  [[nodiscard]] std::int64_t strategy_number() const noexcept;

  // Set by set_up(), then constant.
  std::shared_ptr<sql::run_out> run_out_;

 private:
  // Whoever was told to let go has this long; then its connection is ended.
  static constexpr duration letting_go = std::chrono::seconds(1);
  static constexpr duration between_looks = std::chrono::milliseconds(20);

  static spi::caps capabilities();
  std::shared_ptr<bound_store> own() {
    return std::static_pointer_cast<bound_store>(this->shared_from_this());
  }

  struct forcing;
  // Of ours nobody holds: one that is not ours cannot be told to let go.
  void look_outside(const std::shared_ptr<forcing>& what, const std::string& claim);
  void await_forced(const std::shared_ptr<forcing>& what);

  [[nodiscard]] tl::unexpected<error> lacks(const char* what) const;

  using base::ask;
};

template <class Engine>
spi::caps bound_store<Engine>::capabilities() {
  spi::caps caps;
  caps.engine = Engine::name;
  caps.expires = false;
  caps.fair = false;
  caps.permits = false;
  caps.supports_mode_change = false;
  caps.latches = false;
  return caps;
}

template <class Engine>
bound_store<Engine>::bound_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : base(std::move(reactor), std::move(options), capabilities()) {}

template <class Engine>
void bound_store<Engine>::set_up() {
  const std::string process = fresh_process(*reactor_);
  const std::weak_ptr<bound_store> weak = own();
  control_ = Engine::make_control_connection(net_, options_, process);
  notifications_ = notifications<Engine>::make(net_, options_, process, control_,
                                               [weak](const spi::claim_id& claim) {
                                                 const auto self = weak.lock();
                                                 if (self != nullptr && self->usable())
                                                   self->let_go(claim);
                                               });
  run_out_ = std::make_shared<run_out>(reactor_, [weak](const spi::claim_ptr& claim) {
    const auto self = weak.lock();
    if (self != nullptr && self->usable()) self->give_back(*claim, claim->lock_delay);
  });
  notifications_->start();
}

template <class Engine>
std::int64_t bound_store<Engine>::strategy_number() const noexcept {
  return options_->strategy == strategy::session ? 1 : 2;
}

template <class Engine>
tl::unexpected<error> bound_store<Engine>::lacks(const char* what) const {
  return failure(errc::unsupported, std::string(Engine::name) +
                                        ", strategy=" + std::string(name_of(options_->strategy)) +
                                        " has no " + what + "; strategy=lease has");
}

template <class Engine>
result<void> bound_store<Engine>::fits(const spi::claim& claim) const {
  if (claim.mode == spi::mode::permit) return lacks("permits");
  if (claim.fair) return lacks("order");
  if (claim.proposed_fence) return lacks("votes");
  return check_name(claim.resource);
}

template <class Engine>
void bound_store<Engine>::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                                 spi::completion<spi::granted> done) {
  done(lacks("change of modes"));
}

template <class Engine>
void bound_store<Engine>::inspect(const spi::resource_id& resource, const spi::op_context& context,
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

template <class Engine>
void bound_store<Engine>::list(const std::string& space, const std::string& prefix,
                               const spi::op_context& context,
                               spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all that begin like this come before it.
  with.bytes(first).bytes(first + '\xff').number(strategy_number());
  ask(*control_, statement::bound_list, std::move(with), context, std::move(done), to_summaries);
}

// By force: answered when they have let go, or when their connections were ended.
template <class Engine>
struct bound_store<Engine>::forcing {
  spi::resource_id resource;
  std::string key;
  time_point deadline;
  time_point patience;
  std::vector<spi::holder> taken;
  spi::completion<std::vector<spi::holder>> done;
};

template <class Engine>
void bound_store<Engine>::revoke(const spi::resource_id& resource, spi::revocation how,
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
  this->template ask<std::vector<spi::holder>>(
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

template <class Engine>
void bound_store<Engine>::look_outside(const std::shared_ptr<forcing>& what,
                                       const std::string& claim) {
  spi::op_context context;
  context.deadline = what->deadline;
  inspect(what->resource, context, [what, claim](const result<spi::resource_state>& state) {
    if (!state) return what->done(tl::unexpected(state.error()));
    std::string pids;
    std::string ending;
    for (const spi::holder& each : state->holders) {
      constexpr std::string_view outside = "pid:";
      if (!each.claim.starts_with(outside) || (!claim.empty() && each.claim != claim)) continue;
      const std::string pid = each.claim.substr(outside.size());
      pids += (pids.empty() ? "" : ", ") + pid;
      ending += (ending.empty() ? "" : "; ") + Engine::ending(pid);
    }
    if (pids.empty()) return what->done(std::vector<spi::holder>{});
    what->done(failure(errc::unsupported, "held outside holdfast by session " + pids +
                                              ", which only the server can end: " + ending));
  });
}

template <class Engine>
void bound_store<Engine>::await_forced(const std::shared_ptr<forcing>& what) {
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

template <class Engine>
void bound_store<Engine>::change_latch(const spi::resource_id&, const spi::latch_change&,
                                       const spi::op_context&,
                                       spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

template <class Engine>
void bound_store<Engine>::read_latch(const spi::resource_id&, const spi::op_context&,
                                     spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

template <class Engine>
result<std::unique_ptr<spi::subscription>> bound_store<Engine>::watch_latch(const spi::resource_id&,
                                                                            spi::latch_watch) {
  return lacks("latches");
}

template <class Engine>
void bound_store<Engine>::close() noexcept {
  if (!this->begin_close()) return;
  run_out_->close();
  close_carriers();
  control_->close();
  notifications_->close();
}

}  // namespace holdfast::sql
