#include "primitives/election_watch.hpp"

#include <utility>

namespace holdfast {

namespace {

constexpr duration election_recheck = std::chrono::seconds(1);

}  // namespace

std::optional<leader_info> leader_of(const spi::resource_state& state) {
  if (state.holders.empty()) return std::nullopt;
  const spi::holder& first = state.holders.front();
  return leader_info{first.payload, first.fence.value_or(fence_token{}), first.claim};
}

election_watch::election_watch(std::shared_ptr<client::state> client, spi::resource_id resource,
                               report on_change)
    : client_(std::move(client)),
      resource_(std::move(resource)),
      on_change_(std::move(on_change)) {}

void election_watch::start() {
  // Posted: from a store's call, where the store must not be called in turn.
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
  }  // else the clock alone wakes us
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
    if (answer) seen_ = leader_of(*answer);  // without an answer, what was known stands
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
    // Made under the lock, as in latch_wait: else the one that follows it could be cancelled in its place.
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    old = std::exchange(timer_, client_->runtime->at(when, [self = weak_from_this()] {
      if (const auto watch = self.lock()) watch->look();
    }));
  }
  if (old != 0) client_->runtime->cancel(old);
}

// Also where the report throws: the next one must not be held up by it.
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

}  // namespace holdfast
