// The subscriber's link: connecting, keeping alive, and what follows its end.
#include "stores/redis/client/subscriber.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

subscriber::subscriber(net::network net, server_options options, subscriber_limits limits)
    : net_(std::move(net)),
      options_(std::make_shared<const server_options>(std::move(options))),
      limits_(limits),
      backoff_(options_->backoff) {}

std::shared_ptr<subscriber> subscriber::make(net::network net, server_options options,
                                             subscriber_limits limits) {
  return std::shared_ptr<subscriber>(new subscriber(std::move(net), std::move(options), limits));
}

subscriber::~subscriber() {
  if (!guard_.forked()) close();
}

// Called with the mutex held, which it releases.
void subscriber::connect(mutex_lock& lock) {
  state_ = state::connecting;
  link_ = std::make_shared<link>(net_, options_, weak_from_this());
  const std::shared_ptr<link> made = link_;
  lock.unlock();
  made->start();
}

void subscriber::opened(link& which, const server_info&) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  const time_point now = net_.reactor->now();
  state_ = state::open;
  opened_at_ = now;
  for (const auto& [channel, unused] : channels_) ask(question::subscribe, channel, now);
  look_after_link(now + std::min(limits_.keepalive, limits_.answer));
  lock.unlock();
  which.flush();
}

void subscriber::ended(link& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  drop_link(lock, why);
}

// Called with the mutex held, which it releases.
void subscriber::drop_link(mutex_lock& lock, const error& why) {
  const time_point now = net_.reactor->now();
  if (state_ == state::open) backoff_.succeeded(now - opened_at_);
  const std::shared_ptr<link> gone = std::move(link_);
  not_before_ = now + backoff_.next(net_.reactor->random());
  asked_.clear();
  std::erase_if(channels_, [](const auto& item) { return item.second.listeners.empty(); });
  news told;
  for (auto& [channel, mine] : channels_) {
    mine.questions = 0;
    mine.confirmed = false;
    mine.lost = false;
    for (const auto& [id, listener] : mine.listeners) {
      told.push_back({listener, notice::event::interrupted, {}, why});
    }
  }
  rest_or_idle();
  lock.unlock();
  if (gone != nullptr) gone->close();
  tell(told);
}

// After a failure. Called with the mutex held.
void subscriber::rest_or_idle() {
  state_ = channels_.empty() ? state::idle : state::resting;
  net_.reactor->cancel(timer_);
  if (state_ == state::idle) return;
  timer_ = net_.reactor->at(not_before_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    mutex_lock lock(self->mutex_);
    if (self->state_ == state::resting) self->connect(lock);
  });
}

// Called with the mutex held and the link open.
void subscriber::look_after_link(time_point when) {
  net_.reactor->cancel(timer_);
  timer_ = net_.reactor->at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_alive();
  });
}

void subscriber::keep_alive() {
  mutex_lock lock(mutex_);
  if (state_ != state::open) return;
  const time_point now = net_.reactor->now();
  if (!asked_.empty() && now - asked_.front().at >= limits_.answer) {
    return drop_link(
        lock, {errc::unavailable, "redis " + options_->where.text() + ": no answer in time"});
  }
  for (auto& [channel, mine] : channels_) {
    if (!mine.lost || mine.questions > 0) continue;
    mine.lost = false;
    ask(question::subscribe, channel, now);
  }
  if (asked_.empty()) ask(question::ping, {}, now);
  look_after_link(std::min(now + limits_.keepalive, asked_.front().at + limits_.answer));
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

void subscriber::close() noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (std::exchange(state_, state::closed) == state::closed) return;
  const std::shared_ptr<link> gone = std::move(link_);
  channels_.clear();
  asked_.clear();
  const spi::runtime::timer_id timer = timer_;
  lock.unlock();
  net_.reactor->cancel(timer);
  if (gone != nullptr) gone->close();
}

}  // namespace holdfast::redis
