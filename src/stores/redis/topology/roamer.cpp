// See the header.
#include "stores/redis/topology/roamer.hpp"

#include <utility>

namespace holdfast::redis {

// What one node says; the roamer may end, or be elsewhere, first.
class roamer::relay final : public channel_listener {
 public:
  relay(std::weak_ptr<roamer> of, std::uint64_t token) : of_(std::move(of)), token_(token) {}

  void confirmed() override { pass({event::kind::confirmed, {}, {}}); }
  void message(std::string_view payload) override {
    pass({event::kind::message, std::string(payload), {}});
  }
  void interrupted(const error& why) override { pass({event::kind::interrupted, {}, why}); }

 private:
  void pass(event what) {
    if (const auto owner = of_.lock()) owner->take(token_, std::move(what));
  }

  const std::weak_ptr<roamer> of_;
  const std::uint64_t token_;
};

roamer::roamer(channel_id channel, std::weak_ptr<channel_listener> listener,
               std::function<void()> troubled)
    : listener_(std::move(listener)),
      troubled_(std::move(troubled)),
      channel_(std::move(channel)) {}

roamer::~roamer() = default;

void roamer::go(const std::shared_ptr<node>& to, std::uint64_t version) {
  mutex_lock lock(mutex_);
  if (ended_ || version <= version_) return;
  version_ = version;
  node_ = to;
  listen_there(lock);
}

// Called with the mutex held, which it releases.
void roamer::listen_there(mutex_lock& lock) {
  const std::uint64_t token = ++token_;
  if (token > 1) {
    events_.push_back(
        {event::kind::interrupted, {}, {errc::unavailable, "the partition moved to another node"}});
  }
  const auto mine = std::make_shared<relay>(weak_from_this(), token);
  relay_ = mine;
  std::unique_ptr<spi::subscription> left = std::move(subscription_);
  const std::shared_ptr<node> to = node_;
  const channel_id channel = channel_;
  lock.unlock();
  left.reset();
  auto made = to->listen(channel, mine);
  lock.lock();
  if (token == token_) {
    if (made) {
      subscription_ = *std::move(made);
    } else {
      events_.push_back({event::kind::interrupted, {}, made.error()});
    }
  }
  deliver(lock);
  lock.unlock();
}

void roamer::take(std::uint64_t token, event what) {
  mutex_lock lock(mutex_);
  if (ended_ || token != token_) return;
  const bool trouble = what.what == event::kind::interrupted;
  if (trouble && what.why == errc::unsupported && channel_.kind == channel_id::flavour::sharded) {
    channel_.kind = channel_id::flavour::classic;
    return listen_there(lock);
  }
  if (what.what == event::kind::message && events_.size() >= event_limit) return;
  events_.push_back(std::move(what));
  deliver(lock);
  lock.unlock();
  if (trouble) troubled_();
}

// Called with the mutex held, and returns so. Who finds another at it leaves the events to that one.
void roamer::deliver(mutex_lock& lock) {
  if (std::exchange(delivering_, true)) return;
  while (!events_.empty() && !ended_) {
    const event next = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    if (const auto whom = listener_.lock()) {
      if (next.what == event::kind::confirmed) whom->confirmed();
      if (next.what == event::kind::message) whom->message(next.payload);
      if (next.what == event::kind::interrupted) whom->interrupted(next.why);
    }
    lock.lock();
  }
  delivering_ = false;
}

void roamer::end() noexcept {
  std::unique_ptr<spi::subscription> left;
  std::shared_ptr<node> from;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  ++token_;
  left = std::move(subscription_);
  from = std::move(node_);
}

}  // namespace holdfast::redis
