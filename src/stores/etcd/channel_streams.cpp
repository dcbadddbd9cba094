// Streams of messages both ways, which live as long as their connection.
#include "stores/etcd/channel.hpp"

#include <utility>

namespace holdfast::etcd {

// Called with the mutex held, while open.
void channel::begin_stream(listening& one) {
  if (retiring_) return;
  one.stream =
      link_->begin(path_of(one.what), one.unsent.front(), http2_connection::kind::stream, token_);
  if (one.stream == 0) return retire();
  const std::vector<std::string> messages = std::exchange(one.unsent, {});
  for (std::size_t i = 1; i < messages.size(); ++i) link_->send(one.stream, messages[i]);
}

std::uint64_t channel::open_stream(method what, std::string first,
                                   std::weak_ptr<stream_listener> who) {
  mutex_lock lock(mutex_);
  if (state_ == state::closed || guard_.forked()) return 0;
  const std::uint64_t id = next_stream_++;
  listening& made = streams_[id];
  made.what = what;
  made.unsent.push_back(std::move(first));
  made.who = std::move(who);
  if (state_ == state::idle) {
    // Not from here: a connection that is refused at once would be told within this call.
    net_.reactor->post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      mutex_lock again(self->mutex_);
      if (self->state_ == state::idle && !self->streams_.empty()) self->connect(again);
    });
  } else if (state_ == state::open) {
    begin_stream(made);
    const std::shared_ptr<http2_connection> out = link_;
    lock.unlock();
    out->flush();
  }
  return id;
}

void channel::send(std::uint64_t stream, const std::string& message) {
  mutex_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.stream == 0) {
    found->second.unsent.push_back(message);
    return;
  }
  link_->send(found->second.stream, message);
  const std::shared_ptr<http2_connection> out = link_;
  lock.unlock();
  out->flush();
}

void channel::abandon(std::uint64_t stream, credentials how) {
  mutex_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.stream != 0) link_->reset(found->second.stream);
  streams_.erase(found);
  if (how == credentials::new_token && state_ == state::open && !options_->user.empty()) {
    log_in(net_.reactor->now());
  }
  lock.unlock();
  flush();
}

}  // namespace holdfast::etcd
