// The store behind strategy=lease: claims are rows, each verb is one call of a stored function, one
// round trip and one transaction, decided by the server's clock.
#include "stores/sql/common/names.hpp"
#include "stores/sql/renewal_batch.hpp"
#include "stores/sql/server_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::sql {

namespace {

// Thread-safe. Connects in the background, from the start. All calls that concern one name go over
// the same connection, so that they are executed in the order in which they were made.
//
// Shutdown: verbs are refused; calls under way are answered; no notifications arrive any more.
class lease_store final : public server_store {
 public:
  lease_store(std::shared_ptr<spi::reactor> reactor, const std::shared_ptr<const engine>& of)
      : server_store(std::move(reactor), of, capabilities(of->name)) {}
  // Called once, when the store is shared.
  void open();
  ~lease_store() override;
  lease_store(const lease_store&) = delete;
  lease_store& operator=(const lease_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) final;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) final;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) final;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) final;
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) final;

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

 private:
  static constexpr duration default_latch_life = std::chrono::hours(24);

  static spi::caps capabilities(const std::string& engine);
  std::shared_ptr<lease_store> own() {
    return std::static_pointer_cast<lease_store>(shared_from_this());
  }
  void send_attempt(const spi::claim_ptr& claim, bool may_queue, const spi::op_context& context,
                    spi::completion<spi::outcome> done);
  void queue_when_listening(const spi::claim_ptr& claim, const spi::op_context& context,
                            spi::completion<spi::outcome> done);
  [[nodiscard]] connection& command_connection(const std::string& key) const;
  void renew_part(const std::shared_ptr<renewal_batch>& whole,
                  const std::vector<spi::claim_ptr>& claims, std::vector<std::size_t> part,
                  connection& over, const spi::op_context& context);

  // Set by make(), then constant. The first is the control connection, too.
  std::vector<std::shared_ptr<connection>> command_connections_;
  // The first name that is used shares the control connection: a client of one name needs no other.
  mutable std::once_flag named_;
  mutable std::size_t first_name_ = 0;
  const std::shared_ptr<renewal_pace> pace_ = std::make_shared<renewal_pace>();
};

spi::caps lease_store::capabilities(const std::string& engine) {
  spi::caps caps;
  caps.engine = engine;
  caps.supports_detach = true;
  return caps;
}

void lease_store::open() {
  const std::string process = fresh_process(*reactor_);
  auto& all = command_connections_;
  control_ = engine_->make_control_connection(net_, process);
  notifications_ = notifications::make(net_, *engine_, process, control_);
  all.push_back(control_);
  while (all.size() < engine_->options().connections) {
    all.push_back(engine_->make_command_connection(net_));
    notifications_->follow(*all.back());
  }
  // The first lock must not wait for a handshake that could have been made before.
  control_->start();
  notifications_->start();
}

lease_store::~lease_store() { lease_store::close(); }

void lease_store::close() noexcept {
  if (!begin_close()) return;
  for (const auto& each : command_connections_) each->close();
  notifications_->close();
}

connection& lease_store::command_connection(const std::string& key) const {
  const std::size_t number = std::hash<std::string>{}(key);
  std::call_once(named_, [this, number] { first_name_ = number; });
  return *command_connections_[(number - first_name_) % command_connections_.size()];
}

void lease_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                          const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (!usable()) return done(refusal());
  notifications_->wakeup_registry().add(claim->id, std::move(wakeup));
  // A claim that queues must be reachable, or its turn would be skipped. Until then it only tries, at
  // the same time: usually the lock is free.
  const bool reachable = !claim->queued || notifications_->is_open();
  send_attempt(claim, reachable, context, std::move(done));
}

void lease_store::send_attempt(const spi::claim_ptr& claim, bool may_queue,
                               const spi::op_context& context, spi::completion<spi::outcome> done) {
  const std::string key = key_of(claim->resource);
  const auto& wakeups = notifications_->shared_wakeups();
  auto asked = claim;
  if (!may_queue) {
    auto tries = std::make_shared<spi::claim>(*claim);
    tries->queued = false;
    asked = std::move(tries);
  }
  command_connection(key).send(
      engine_->attempt(key, *asked, notifications_->process(), *wakeups), context,
      [self = own(), claim, may_queue, context, done = std::move(done)](result<rows> said) mutable {
        auto answer = said ? self->engine_->to_outcome(*said, *claim)
                           : result<spi::outcome>(tl::unexpected(std::move(said.error())));
        auto& registry = self->notifications_->wakeup_registry();
        const auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
        if (grant == nullptr || grant->wanted || grant->offer) registry.mark_contended(claim->id);
        if (is_turned_away(answer)) {
          if (!may_queue) return self->queue_when_listening(claim, context, std::move(done));
          registry.remove(claim->id);
        }
        done(std::move(answer));
      });
}

void lease_store::queue_when_listening(const spi::claim_ptr& claim, const spi::op_context& context,
                                       spi::completion<spi::outcome> done) {
  // What is left after that is for the attempt, which queues then in any case.
  const time_point now = reactor_->now();
  const time_point half = now + (context.deadline - now) / 2;
  notifications_->when_open(
      std::min(half, context.reach_by),
      [self = own(), claim, context, done = std::move(done)](const result<void>&) mutable {
        if (self->notifications_->wakeup_registry().find(claim->id) == nullptr) {
          return done(failure(errc::unavailable, "left before it was in line"));
        }
        self->send_attempt(claim, true, context, std::move(done));
      });
}

void lease_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                        spi::completion<spi::departure> done) {
  if (!usable()) return done(refusal());
  const std::string key = key_of(claim->resource);
  const auto& wakeups = notifications_->shared_wakeups();
  // Not ahead of its own attempt that waits.
  const terms until = context.unanswered ? context : terms::ahead_of_others(context);
  command_connection(key).send(engine_->leave(key, *claim, context.unanswered, *wakeups), until,
                               [wakeups, id = claim->id, engine = engine_,
                                done = std::move(done)](result<rows> said) mutable {
                                 wakeups->remove(id);
                                 if (!said) return done(tl::unexpected(std::move(said.error())));
                                 done(engine->to_departure(*said));
                               });
}

void lease_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                        spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(refusal());
  if (claims.empty()) return done(std::vector<spi::renewal>{});
  // Ordered by connection, and there by key: two batches that waited for each
  // other's rows would deadlock.
  std::map<connection*, std::map<std::pair<std::string, std::size_t>, std::size_t>> sorted;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::string key = key_of(claims[i]->resource);
    connection* over = &command_connection(key);
    sorted[over].emplace(std::pair(std::move(key), i), i);
  }
  const std::size_t most = std::min(pace_->per_call(), engine_->renewals_per_call);
  std::vector<std::pair<connection*, std::vector<std::size_t>>> parts;
  for (const auto& [over, indices] : sorted) {
    parts.push_back({over, {}});
    for (const auto& [key, index] : indices) {
      if (parts.back().second.size() >= most) parts.push_back({over, {}});
      parts.back().second.push_back(index);
    }
  }
  const auto whole = std::make_shared<renewal_batch>(claims.size(), parts.size(), std::move(done));
  for (auto& [over, part] : parts) renew_part(whole, claims, std::move(part), *over, context);
}

void lease_store::renew_part(const std::shared_ptr<renewal_batch>& whole,
                             const std::vector<spi::claim_ptr>& claims,
                             std::vector<std::size_t> part, connection& over,
                             const spi::op_context& context) {
  std::vector<spi::claim_ptr> those;
  those.reserve(part.size());
  for (const std::size_t index : part) those.push_back(claims[index]);
  arguments with = engine_->renewal_arguments(those, notifications_->process());
  terms on = terms::ahead_of_others(context);
  on.pace = pace_;
  on.claims = those.size();
  on.allowed = context.deadline - reactor_->now();
  over.send(statement::renew, std::move(with), on,
            [whole, engine = engine_, part = std::move(part),
             those = std::move(those)](result<rows> said) {
              if (!said) return whole->take(part, tl::unexpected(std::move(said.error())));
              whole->take(part, engine->to_renewals(*said, those));
            });
}

void lease_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                         spi::completion<spi::granted> done) {
  const std::string key = key_of(claim->resource);
  arguments with;
  with.bytes(key).bytes(bytes_of(claim->id)).text(notifications_->process());
  with.number(static_cast<std::int64_t>(to));
  ask(command_connection(key), statement::change, std::move(with), terms::ahead_of_others(context),
      std::move(done), to_granted);
}

// A lost answer is requested again, so `to` stays registered until it is left.
void lease_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                           std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                           spi::completion<spi::granted> done) {
  if (!usable()) return done(refusal());
  const std::string key = key_of(to->resource);
  auto& registry = notifications_->wakeup_registry();
  if (wakeup) {
    registry.add(to->id, std::move(wakeup));
    registry.mark_contended(to->id);  // it is not where the fast paths look for it
  }
  arguments with;
  with.bytes(key).bytes(bytes_of(from)).bytes(bytes_of(to->id)).text(spi::public_id(to->id));
  with.text(notifications_->process()).flag(to->renewed).number(microseconds(to->ttl));
  with.bytes(to->payload).flag(context.unanswered);
  spi::completion<spi::granted> answered =
      [wakeups = notifications_->shared_wakeups(), from, id = to->id,
       done = std::move(done)](result<spi::granted> answer) mutable {
        const bool unknown = !answer && answer.error() == errc::unavailable;
        if (!unknown && from != id) wakeups->remove(from);
        if (!answer && !unknown) wakeups->remove(id);
        done(std::move(answer));
      };
  ask(command_connection(key), statement::transfer, std::move(with),
      terms::ahead_of_others(context), std::move(answered), to_granted);
}

void lease_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                          spi::completion<spi::resource_state> done) {
  const std::string key = key_of(resource);
  arguments with;
  with.bytes(key);
  ask(command_connection(key), statement::inspect, std::move(with), context, std::move(done),
      to_state);
}

void lease_store::list(const std::string& space, const std::string& prefix,
                       const spi::op_context& context,
                       spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string first = key_of({space, prefix});
  arguments with;
  // Names are valid UTF-8, which has no byte 0xff: all names with this prefix come before it.
  with.bytes(first).bytes(first + '\xff');
  ask(command_connection(first), statement::list, std::move(with), context, std::move(done),
      to_summaries);
}

void lease_store::revoke(const spi::resource_id& resource, spi::revocation how,
                         const std::string& claim, const spi::op_context& context,
                         spi::completion<std::vector<spi::holder>> done) {
  const std::string key = key_of(resource);
  arguments with;
  with.bytes(key).flag(how == spi::revocation::force).text(claim);
  ask(command_connection(key), statement::revoke, std::move(with), context, std::move(done),
      to_holders);
}

void lease_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                               const spi::op_context& context,
                               spi::completion<spi::latch_state> done) {
  const std::string key = key_of(resource);
  const duration life = change.life > duration{0} ? change.life : default_latch_life;
  arguments with;
  with.bytes(key).flag(change.what == spi::latch_change::kind::set);
  with.number(static_cast<std::int32_t>(std::min<std::uint32_t>(change.count, INT32_MAX)));
  with.bytes(bytes_of(change.id)).number(microseconds(life));
  ask(command_connection(key), statement::change_latch, std::move(with), context, std::move(done),
      to_latch);
}

void lease_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                             spi::completion<spi::latch_state> done) {
  const std::string key = key_of(resource);
  arguments with;
  with.bytes(key);
  ask(command_connection(key), statement::read_latch, std::move(with), context, std::move(done),
      to_latch);
}

result<std::unique_ptr<spi::subscription>> lease_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (!usable()) return refusal();
  return notifications_->watch_latch(resource, std::move(on_change));
}

}  // namespace

std::shared_ptr<spi::store> make_lease_store(std::shared_ptr<spi::reactor> reactor,
                                             std::shared_ptr<const engine> of) {
  const auto made = std::make_shared<lease_store>(std::move(reactor), std::move(of));
  made->open();
  return made;
}

}  // namespace holdfast::sql
