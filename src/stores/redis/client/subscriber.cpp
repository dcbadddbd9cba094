#include "stores/redis/client/subscriber.hpp"

#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

// One listener's subscription; the subscriber may end first.
class subscriber::handle final : public spi::subscription {
 public:
  handle(std::weak_ptr<subscriber> of, channel_id channel, std::uint64_t id)
      : of_(std::move(of)), channel_(std::move(channel)), id_(id) {}
  ~handle() override {
    if (const auto owner = of_.lock()) owner->unsubscribe(channel_, id_);
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;

 private:
  const std::weak_ptr<subscriber> of_;
  const channel_id channel_;
  const std::uint64_t id_;
};

result<std::unique_ptr<spi::subscription>> subscriber::subscribe(
    const channel_id& channel, std::weak_ptr<channel_listener> listener) {
  if (guard_.forked()) return failure(errc::cancelled, "forked from the client's process");
  mutex_lock lock(mutex_);
  if (state_ == state::closed) return failure(errc::cancelled, "closed");
  if (channels_.size() >= channel_limit && !channels_.contains(channel)) {
    return failure(errc::overloaded, "more than " + std::to_string(channel_limit) + " channels");
  }
  entry& mine = channels_[channel];
  const bool first = mine.listeners.empty();
  const bool known = mine.confirmed;
  const std::uint64_t id = next_id_++;
  mine.listeners.emplace(id, std::move(listener));
  auto made = std::make_unique<handle>(weak_from_this(), channel, id);
  if (state_ == state::open && first) {
    ask(question::subscribe, channel, net_.reactor->now());
    const std::shared_ptr<link> out = link_;
    lock.unlock();
    out->flush();
  } else {
    reach(lock, false, net_.reactor->now());
  }
  if (lock.owns_lock()) lock.unlock();
  if (known) {
    net_.reactor->post([weak = weak_from_this(), channel, id] {
      if (const auto self = weak.lock()) self->tell_if_confirmed(channel, id);
    });
  }
  return made;
}

// For a listener that came after the channel was confirmed.
void subscriber::tell_if_confirmed(const channel_id& channel, std::uint64_t id) {
  news told;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = channels_.find(channel);
    if (found == channels_.end() || !found->second.confirmed) return;
    const auto mine = found->second.listeners.find(id);
    if (mine == found->second.listeners.end()) return;
    told.push_back({mine->second, notice::event::confirmed, {}, {}});
  }
  tell(told);
}

void subscriber::unsubscribe(const channel_id& channel, std::uint64_t id) noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  entry& mine = found->second;
  mine.listeners.erase(id);
  if (!mine.listeners.empty()) return;
  if (state_ != state::open) {
    channels_.erase(found);
    return;
  }
  mine.confirmed = false;
  mine.lost = false;
  ask(question::unsubscribe, channel, net_.reactor->now());
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held and the link open; the caller flushes.
void subscriber::ask(question what, const channel_id& channel, time_point now) {
  const bool sharded = channel.kind == channel_id::flavour::sharded;
  if (what == question::ping) {
    link_->queue(command{"PING"}.bytes());
  } else {
    const std::string_view verb = what == question::subscribe
                                      ? (sharded ? "SSUBSCRIBE" : "SUBSCRIBE")
                                      : (sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE");
    link_->queue(command{verb, channel.name}.bytes());
    ++channels_[channel].questions;
  }
  asked_.push_back({what, channel, now});
}

void subscriber::received(link& which, std::vector<reply>& replies) {
  news told;
  bool sound = true;
  {
    const std::scoped_lock lock(mutex_);
    if (&which != link_.get()) return;
    for (const reply& one : replies) {
      sound = take(one, told);
      if (!sound) break;
    }
  }
  tell(told);
  mutex_lock lock(mutex_);
  if (sound || &which != link_.get()) return;
  drop_link(lock, {errc::unavailable, where() + ": protocol error: a reply to no request"});
}

// Called with the mutex held, like everything down to settle(). False: unexpected reply.
bool subscriber::take(const reply& answer, news& told) {
  if (answer.is_error()) return take_error(answer, told);
  if (answer.words() == "PONG") return answered(question::ping, {});
  if (answer.elements.size() < 2) return false;
  const std::string_view what = answer.elements[0].words();
  if (what == "pong") return answered(question::ping, {});
  if (answer.elements.size() < 3) return false;
  const bool sharded = what.starts_with('s') && what != "subscribe";
  const channel_id channel{sharded ? channel_id::flavour::sharded : channel_id::flavour::classic,
                           std::string(answer.elements[1].words())};
  return take_push(sharded ? what.substr(1) : what, channel, answer, told);
}

bool subscriber::take_push(std::string_view what, const channel_id& channel, const reply& answer,
                           news& told) {
  const auto found = channels_.find(channel);
  if (what == "message") {
    if (found == channels_.end()) return true;  // sent before the server knew that we had left
    for (const auto& [id, listener] : found->second.listeners) {
      told.push_back({listener, notice::event::message, answer.elements[2].text, {}});
    }
    return true;
  }
  if (what == "subscribe") {
    if (!answered(question::subscribe, channel)) return false;
    settle(found, told);
    return true;
  }
  if (what != "unsubscribe") return false;
  if (answered(question::unsubscribe, channel)) {
    settle(found, told);
  } else if (found != channels_.end()) {
    lose(found->second, {errc::unavailable, channel.name + ": its slot moved to another node"},
         told);
  }
  return true;
}

// An error is the answer to the oldest question.
bool subscriber::take_error(const reply& answer, news& told) {
  if (asked_.empty()) return false;
  const asked first = std::move(asked_.front());
  asked_.pop_front();
  const auto found = channels_.find(first.channel);
  if (first.what == question::ping || found == channels_.end()) return true;
  entry& mine = found->second;
  --mine.questions;
  const error why =
      to_error(answer, first.what == question::subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE", where(),
               {{}, "&" + first.channel.name});
  if (first.what == question::subscribe) lose(mine, why, told);
  if (mine.listeners.empty() && mine.questions == 0) channels_.erase(found);
  return true;
}

// Takes the oldest question from the list, if it is this one.
bool subscriber::answered(question what, const channel_id& channel) {
  if (asked_.empty()) return false;
  const asked& first = asked_.front();
  if (first.what != what || (what != question::ping && first.channel != channel)) return false;
  asked_.pop_front();
  if (what == question::ping) return true;
  --channels_[channel].questions;
  return true;
}

// After an answer about the channel: no open question means that it is as wanted.
void subscriber::settle(channel_map::iterator channel, news& told) {
  entry& mine = channel->second;
  if (mine.questions > 0) return;
  if (mine.listeners.empty()) {
    channels_.erase(channel);
    return;
  }
  mine.confirmed = true;
  mine.lost = false;
  for (const auto& [id, listener] : mine.listeners) {
    told.push_back({listener, notice::event::confirmed, {}, {}});
  }
}

void subscriber::lose(entry& channel, const error& why, news& told) {
  channel.confirmed = false;
  channel.lost = true;
  for (const auto& [id, listener] : channel.listeners) {
    told.push_back({listener, notice::event::interrupted, {}, why});
  }
  look_after_link(net_.reactor->now() + backoff_.next(net_.reactor->random()));
}

void subscriber::tell(const news& told) {
  for (const notice& one : told) {
    const auto listener = one.whom.lock();
    if (listener == nullptr) continue;
    if (one.what == notice::event::confirmed) listener->confirmed();
    if (one.what == notice::event::message) listener->message(one.payload);
    if (one.what == notice::event::interrupted) listener->interrupted(one.why);
  }
}

// The link: connecting, keepalive, and what follows its end.

subscriber::subscriber(net::network net, server_options options, subscriber_limits limits)
    : reconnecting_connection(std::move(net), options.backoff, 1),
      options_(std::make_shared<const server_options>(std::move(options))),
      limits_(limits) {}

std::shared_ptr<subscriber> subscriber::make(net::network net, server_options options,
                                             subscriber_limits limits) {
  return std::shared_ptr<subscriber>(new subscriber(std::move(net), std::move(options), limits));
}

subscriber::~subscriber() {
  if (!guard_.forked()) close();
}

void subscriber::opened(link& which, const server_info&) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  const time_point now = net_.reactor->now();
  set_open(now);
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
  const std::shared_ptr<link> gone = take_link(why, now);
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
  rest_or_idle(now);
  lock.unlock();
  if (gone != nullptr) gone->close();
  tell(told);
}

// Called with the mutex held and the link open.
void subscriber::look_after_link(time_point when) {
  net_.reactor->cancel(keepalive_timer_);
  keepalive_timer_ = net_.reactor->at(when, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_alive();
  });
}

void subscriber::keep_alive() {
  mutex_lock lock(mutex_);
  if (state_ != state::open) return;
  const time_point now = net_.reactor->now();
  if (!asked_.empty() && now - asked_.front().at >= limits_.answer) {
    return drop_link(lock, {errc::unavailable, where() + ": no answer in time"});
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
  if (state_ == state::closed) return;
  const std::shared_ptr<link> gone = set_closed();
  channels_.clear();
  asked_.clear();
  net_.reactor->cancel(keepalive_timer_);
  lock.unlock();
  if (gone != nullptr) gone->close();
}

}  // namespace holdfast::redis
