// What strategy=session and strategy=row have in common: their holds are tied to connections. What
// people see and do goes over a desk of its own, so that no look delays a sign of life; what such locks
// cannot have is refused.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/sql/hearing.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/run_out.hpp"
#include "stores/sql/strategy.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe. `Engine`: what tells one server from another (engine.hpp of each); its namespace has
// examined() and refused(), for `doctor`.
//
// Shutdown: verbs are refused; calls under way are answered; the connections end, and the holds with
// them; nothing is heard any more.
template <class Engine>
class tied_store : public spi::store, public std::enable_shared_from_this<tied_store<Engine>> {
 public:
  using connection = typename Engine::connection;
  using arguments = typename Engine::arguments;
  using statement = typename Engine::statement;
  using server_options = typename Engine::server_options;

  ~tied_store() override = default;
  tied_store(const tied_store&) = delete;
  tied_store& operator=(const tied_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept final { return caps_; }

  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) final;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) final;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) final;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) final;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context, spi::completion<std::vector<spi::holder>> done) final;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) final;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context, spi::completion<spi::latch_state> done) final;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) final;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) final;
  void probe(const spi::op_context& context, spi::completion<std::vector<spi::check>> done) final;
  void close() noexcept final;

 protected:
  tied_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  // Once, when the store is shared.
  void set_up();

  // A hold was taken away by force: its connection gives it back.
  virtual void let_go(const spi::claim_id& claim) = 0;
  // Nobody waits for the answer. `delay`: it ended abnormally, and its name stays shut for so long.
  virtual void give_back(const spi::claim& claim, duration delay) = 0;
  // The connections that carry holds.
  virtual void close_carriers() noexcept = 0;

  [[nodiscard]] bool usable() const noexcept;
  // The permits and orders that these locks do not have.
  [[nodiscard]] result<void> fits(const spi::claim& claim) const;
  [[nodiscard]] static tl::unexpected<error> refusal();
  [[nodiscard]] std::int64_t strategy_number() const noexcept;

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const server_options> options_;
  const spi::caps caps_;
  const net::network net_;
  // Set by set_up(), then constant.
  std::shared_ptr<connection> desk_;
  std::shared_ptr<sql::hearing<Engine>> hearing_;
  std::shared_ptr<sql::run_out> run_out_;

 private:
  // Whoever was told to let go has this long; then its connection is ended.
  static constexpr duration letting_go = std::chrono::seconds(1);
  static constexpr duration between_looks = std::chrono::milliseconds(20);

  static spi::caps capabilities();

  struct forcing;
  void await_forced(const std::shared_ptr<forcing>& what);

  template <class T, class Convert>
  void ask(statement which, arguments&& with, const spi::op_context& context,
           spi::completion<T> done, Convert convert);
  [[nodiscard]] tl::unexpected<error> lacks(const char* what) const;

  std::atomic<bool> closed_{false};
};

template <class Engine>
spi::caps tied_store<Engine>::capabilities() {
  spi::caps caps;
  caps.engine = Engine::name;
  caps.expires = false;
  caps.fair = false;
  caps.permits = false;
  caps.change = false;
  caps.latches = false;
  return caps;
}

template <class Engine>
tied_store<Engine>::tied_store(std::shared_ptr<spi::reactor> reactor, server_options options)
    : reactor_(std::move(reactor)),
      options_(std::make_shared<const server_options>(std::move(options))),
      caps_(capabilities()),
      net_(net::make_network(reactor_)) {}

template <class Engine>
void tied_store<Engine>::set_up() {
  const std::string process = fresh_process(*reactor_);
  desk_ = Engine::make_desk(net_, options_, process);
  hearing_ = hearing<Engine>::make(net_, options_, process, desk_,
                                   [weak = this->weak_from_this()](const spi::claim_id& claim) {
                                     const auto self = weak.lock();
                                     if (self != nullptr && self->usable()) self->let_go(claim);
                                   });
  run_out_ = std::make_shared<run_out>(
      reactor_, [weak = this->weak_from_this()](const spi::claim_ptr& claim) {
        const auto self = weak.lock();
        if (self != nullptr && self->usable()) self->give_back(*claim, claim->lock_delay);
      });
  hearing_->start();
}

template <class Engine>
bool tied_store<Engine>::usable() const noexcept {
  return !guard_.forked() && !closed_.load(std::memory_order_acquire);
}

template <class Engine>
tl::unexpected<error> tied_store<Engine>::refusal() {
  return failure(errc::cancelled, std::string(Engine::name) + ": closed or forked");
}

template <class Engine>
std::int64_t tied_store<Engine>::strategy_number() const noexcept {
  return options_->strategy == strategy::session ? 1 : 2;
}

template <class Engine>
tl::unexpected<error> tied_store<Engine>::lacks(const char* what) const {
  return failure(errc::unsupported, std::string(Engine::name) +
                                        ", strategy=" + std::string(name_of(options_->strategy)) +
                                        " has no " + what + "; strategy=lease has");
}

template <class Engine>
result<void> tied_store<Engine>::fits(const spi::claim& claim) const {
  if (claim.mode == spi::mode::permit) return lacks("permits");
  if (claim.fair) return lacks("order");
  if (claim.proposed_fence) return lacks("votes");
  return {};
}

template <class Engine>
template <class T, class Convert>
void tied_store<Engine>::ask(statement which, arguments&& with, const spi::op_context& context,
                             spi::completion<T> done, Convert convert) {
  if (!usable()) return done(refusal());
  desk_->send(which, std::move(with), context.deadline,
              [done = std::move(done), convert](result<sql::rows> said) mutable {
                if (!said) return done(tl::unexpected(std::move(said.error())));
                done(convert(*said));
              });
}

// Never asked for: whoever is blocked and wants to wait has a place in line.
template <class Engine>
void tied_store<Engine>::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                               spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

template <class Engine>
void tied_store<Engine>::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                                spi::completion<spi::granted> done) {
  done(lacks("change of modes"));
}

template <class Engine>
void tied_store<Engine>::inspect(const spi::resource_id& resource, const spi::op_context& context,
                                 spi::completion<spi::resource_state> done) {
  arguments with;
  with.bytes(key_of(resource)).number(strategy_number());
  ask(statement::tied_inspect, std::move(with), context, std::move(done), to_state);
}

template <class Engine>
void tied_store<Engine>::list(const std::string& space, const std::string& prefix,
                              const spi::op_context& context,
                              spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all that begin like this come before it.
  with.bytes(first).bytes(first + '\xff').number(strategy_number());
  ask(statement::tied_list, std::move(with), context, std::move(done), to_summaries);
}

// By force: answered when they have let go, or when their connections were ended.
template <class Engine>
struct tied_store<Engine>::forcing {
  std::string key;
  time_point deadline;
  time_point patience;
  std::vector<spi::holder> taken;
  spi::completion<std::vector<spi::holder>> done;
};

template <class Engine>
void tied_store<Engine>::revoke(const spi::resource_id& resource, spi::revocation how,
                                const std::string& claim, const spi::op_context& context,
                                spi::completion<std::vector<spi::holder>> done) {
  auto what = std::make_shared<forcing>();
  what->key = key_of(resource);
  what->deadline = context.deadline;
  const bool force = how == spi::revocation::force;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(force).text(claim);
  what->done = std::move(done);
  this->template ask<std::vector<spi::holder>>(
      statement::tied_revoke, std::move(with), context,
      [self = this->shared_from_this(), what, force](result<std::vector<spi::holder>> taken) {
        if (!taken || taken->empty() || !force) return what->done(std::move(taken));
        what->taken = *std::move(taken);
        const time_point now = self->reactor_->now();
        what->patience = now + std::min(letting_go, (what->deadline - now) / 2);
        self->await_forced(what);
      },
      to_holders);
}

template <class Engine>
void tied_store<Engine>::await_forced(const std::shared_ptr<forcing>& what) {
  const bool finish = reactor_->now() >= what->patience;
  arguments with;
  with.bytes(what->key).number(strategy_number()).flag(finish);
  if (!usable()) return what->done(refusal());
  desk_->send(statement::tied_forced, std::move(with), what->deadline,
              [self = this->shared_from_this(), what, finish](const result<sql::rows>& said) {
                if (!said) return what->done(tl::unexpected(said.error()));
                const bool gone = said->size() == 1 && said->front() == "0";
                if (gone || finish) return what->done(std::move(what->taken));
                self->reactor_->at(self->reactor_->now() + between_looks,
                                   [self, what] { self->await_forced(what); });
              });
}

template <class Engine>
result<std::unique_ptr<spi::subscription>> tied_store<Engine>::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return refusal();
  return hearing_->observe(resource, std::move(sink));
}

template <class Engine>
void tied_store<Engine>::change_latch(const spi::resource_id&, const spi::latch_change&,
                                      const spi::op_context&,
                                      spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

template <class Engine>
void tied_store<Engine>::read_latch(const spi::resource_id&, const spi::op_context&,
                                    spi::completion<spi::latch_state> done) {
  done(lacks("latches"));
}

template <class Engine>
result<std::unique_ptr<spi::subscription>> tied_store<Engine>::watch_latch(const spi::resource_id&,
                                                                           spi::latch_watch) {
  return lacks("latches");
}

template <class Engine>
void tied_store<Engine>::probe(const spi::op_context& context,
                               spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(refusal());
  // The deadline is the caller's; what is left after the wait for wake-ups is for the questions.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  hearing_->when_open(half, [self = this->shared_from_this(), deadline = context.deadline,
                             done = std::move(done)](const result<void>& open) mutable {
    self->desk_->send(
        statement::examine, {}, deadline,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> said) mutable {
          if (!said) return done(refused(said.error(), *self->options_));
          done(examined(*said, *self->options_, hears));
        });
  });
}

template <class Engine>
void tied_store<Engine>::close() noexcept {
  if (guard_.forked() || closed_.exchange(true, std::memory_order_acq_rel)) return;
  run_out_->close();
  close_carriers();
  desk_->close();
  hearing_->close();
}

}  // namespace holdfast::sql
