#include "core/names.hpp"
#include "primitives/call_guard.hpp"
#include "primitives/client_state.hpp"
#include "primitives/lock_handle_inside.hpp"
#include "primitives/operation.hpp"

#include <holdfast/election.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast {

namespace {

lock_options fair_where_possible(const client& client, lock_options options) {
  options.fair = client.caps().fair;
  return options;
}

std::string checked(const std::string& id) {
  if (id.size() > core::longest_payload) {
    throw lock_error(error{errc::invalid, "an id has at most 256 bytes"});
  }
  return core::clean_payload(id);
}

// A leader that cannot be announced is of no use.
result<void> elects(const client& client) {
  const spi::caps& caps = client.caps();
  if (caps.reports_holders) return {};
  return failure(errc::unsupported, caps.engine + " has no elections");
}

constexpr duration election_recheck = std::chrono::seconds(1);

// Who leads, according to the engine.
std::optional<leader_info> leader_of(const spi::resource_state& state) {
  if (state.holders.empty()) return std::nullopt;
  const spi::holder& first = state.holders.front();
  return leader_info{first.payload, first.fence.value_or(fence_token{}), first.claim};
}

// Follows who leads: looks when the engine reports a change, and each second in case it did not;
// reports what is new; of several changes, only the latest.
//
// Thread-safe. One look and one report at a time. Ends with end(), or when the client is closed.
class election_watch : public std::enable_shared_from_this<election_watch> {
 public:
  using report = std::function<void(const std::optional<leader_info>&)>;

  election_watch(std::shared_ptr<client::state> client, spi::resource_id resource,
                 report on_change);

  void start();
  // After this no report is made, and none is running except on this thread.
  void end();

 private:
  struct reporting;

  void look();
  void looked(const result<spi::resource_state>& answer);
  void rest();
  void tell();
  void told();

  const std::shared_ptr<client::state> client_;
  const spi::resource_id resource_;
  const report on_change_;
  call_guard calls_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::unique_ptr<spi::subscription> subscription_;
  bool ended_ = false;
  bool looking_ = false;
  bool again_ = false;  // a change was reported while a look was in flight
  bool telling_ = false;
  std::optional<std::optional<leader_info>> seen_;
  std::optional<std::optional<leader_info>> told_;
  spi::runtime::timer_id timer_ = 0;
};

election_watch::election_watch(std::shared_ptr<client::state> client, spi::resource_id resource,
                               report on_change)
    : client_(std::move(client)),
      resource_(std::move(resource)),
      on_change_(std::move(on_change)) {}

void election_watch::start() {
  // Posted, since this is called by a store, which must not be called in turn.
  auto made = client_->engine->store().observe(
      resource_, [self = weak_from_this(),
                  runtime = std::weak_ptr(client_->runtime)](const spi::store_event&) {
        const auto alive = runtime.lock();
        if (!alive) return;
        alive->post([self] {
          if (const auto watch = self.lock()) watch->look();
        });
      });
  if (made) {
    const std::lock_guard lock(mutex_);
    subscription_ = std::move(*made);
  }  // else only the clock wakes us
  look();
}

void election_watch::end() {
  if (client_->runtime->forked()) return;
  std::unique_ptr<spi::subscription> ended;
  spi::runtime::timer_id timer = 0;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ended = std::move(subscription_);
    timer = std::exchange(timer_, 0);
  }
  if (timer != 0) client_->runtime->cancel(timer);
  calls_.end();
}

void election_watch::look() {
  if (client_->engine->inert()) return;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    again_ = looking_;
    if (std::exchange(looking_, true)) return;
  }
  client_->engine->store().inspect(
      resource_, client_->soon(),
      [self = shared_from_this()](result<spi::resource_state> answer) { self->looked(answer); });
}

void election_watch::looked(const result<spi::resource_state>& answer) {
  bool again = false;
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    looking_ = false;
    again = std::exchange(again_, false) && answer;
    if (answer) seen_ = leader_of(*answer);  // without an answer, what was known still holds
    news = !telling_ && seen_ != told_;
    if (news) telling_ = true;
  }
  if (news) tell();
  if (again) return look();
  rest();
}

void election_watch::rest() {
  const time_point when = client_->runtime->now() + election_recheck;
  spi::runtime::timer_id old = 0;
  {
    // Set under the lock, as in latch_wait: else the timer that follows it could be cancelled in
    // its place.
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    old = std::exchange(timer_, client_->runtime->at(when, [self = weak_from_this()] {
      if (const auto watch = self.lock()) watch->look();
    }));
  }
  if (old != 0) client_->runtime->cancel(old);
}

// Also if the report throws: the next one must not be held up by it.
struct election_watch::reporting {
  election_watch* watch;
  ~reporting() { watch->told(); }
};

void election_watch::tell() {
  client_->deliver([self = shared_from_this()] {
    std::optional<leader_info> latest;
    {
      const std::lock_guard lock(self->mutex_);
      latest = *self->seen_;
      self->told_ = latest;
    }
    const reporting at_end{self.get()};
    self->calls_.run([&] { self->on_change_(latest); });
  });
}

void election_watch::told() {
  {
    const std::lock_guard lock(mutex_);
    telling_ = !ended_ && seen_ != told_;
    if (!telling_) return;
  }
  tell();
}

class watching final : public spi::subscription {
 public:
  explicit watching(std::shared_ptr<election_watch> watch) : watch_(std::move(watch)) {}
  watching(const watching&) = delete;
  watching& operator=(const watching&) = delete;
  ~watching() override { watch_->end(); }

 private:
  const std::shared_ptr<election_watch> watch_;
};

}  // namespace

election::election(const client& client, std::string name, const std::string& id,
                   const lock_options& options)
    : client_(client),
      id_(checked(id.empty() ? client.inside()->options.payload : id)),
      handle_(client, std::move(name), fair_where_possible(client, options),
              {.payload = id_, .role = spi::role::leader}) {}

result<lease> election::campaign(const acquire_options& options, std::stop_token token) {
  return handle_.acquire(options, std::move(token));
}

acquire_awaitable election::async_campaign(const acquire_options& options, std::stop_token token) {
  return handle_.async_acquire(options, std::move(token));
}

void election::async_campaign(const acquire_options& options, std::stop_token token,
                              acquire_callback done) {
  handle_.async_acquire(options, std::move(token), std::move(done));
}

namespace {

using leader_answer = std::optional<leader_info>;

result<detail::verb<leader_answer>> asking_who_leads(const client& client,
                                                     const std::string& name) {
  if (auto fine = elects(client); !fine) return tl::unexpected(std::move(fine.error()));
  return detail::verb<leader_answer>(
      [state = client.inside(), name](spi::completion<leader_answer> done) {
        state->inspect(name, [done = std::move(done)](const result<resource_state>& seen) mutable {
          if (!seen) return done(tl::unexpected(seen.error()));
          done(leader_of(*seen));
        });
      });
}

}  // namespace

result<election> election::make(const client& client, std::string name, const std::string& id,
                                const lock_options& options) {
  return detail::made([&] { return election(client, std::move(name), id, options); });
}

result<std::optional<leader_info>> election::leader() const {
  return detail::call_now(*client_.inside()->engine, asking_who_leads(client_, name()));
}

awaitable<std::optional<leader_info>> election::async_leader() const {
  return detail::call_soon(client_.inside()->engine, asking_who_leads(client_, name()));
}

result<std::unique_ptr<spi::subscription>> election::observe(
    std::function<void(const std::optional<leader_info>&)> on_change) const {
  if (auto fine = elects(client_); !fine) return tl::unexpected(std::move(fine.error()));
  const auto& state = client_.inside();
  if (auto fine = state->usable(); !fine) return tl::unexpected(std::move(fine.error()));
  auto watch = std::make_shared<election_watch>(state, handle_.in().resource, std::move(on_change));
  watch->start();
  return std::make_unique<watching>(std::move(watch));
}

}  // namespace holdfast
