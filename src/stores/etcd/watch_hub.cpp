#include "stores/etcd/watch_hub.hpp"

#include <utility>

namespace holdfast::etcd {

watch_hub::watch_hub(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
                     net::backoff_limits pauses)
    : reactor_(std::move(reactor)), way_(std::move(way)), backoff_(pauses) {}

watch_hub::watch_id watch_hub::add(key_range of, watch_filter without, watcher who) {
  if (reactor_->forked()) return 0;
  const std::scoped_lock lock(mutex_);
  const watch_id id = next_++;
  if (closed_) return id;
  std::string create = watch_create(of, id, without);
  watches_.emplace(id,
                   one_watch{std::move(of), without, std::make_shared<watcher>(std::move(who))});
  if (stream_ != 0) {
    way_->send(stream_, create);
  } else if (!pausing_) {
    open_stream();
  }
  return id;
}

void watch_hub::remove(watch_id id) {
  if (reactor_->forked()) return;
  const std::scoped_lock lock(mutex_);
  if (watches_.erase(id) == 0 || stream_ == 0) return;
  way_->send(stream_, watch_cancel(id));
}

// Called with the mutex held.
void watch_hub::open_stream() {
  if (watches_.empty() || closed_) return;
  began_ = reactor_->now();
  for (const auto& [id, each] : watches_) {
    std::string create = watch_create(each.of, id, each.without);
    if (stream_ == 0) {
      stream_ = way_->open_stream(method::watch, std::move(create), weak_from_this());
    } else {
      way_->send(stream_, create);
    }
  }
}

void watch_hub::message(std::uint64_t stream, const std::string& body) {
  const auto answer = read_watch(body);
  std::shared_ptr<watcher> who;
  watch_news news;
  {
    const std::scoped_lock lock(mutex_);
    if (stream != stream_ || !answer) return;
    const auto found = watches_.find(answer->id);
    if (found == watches_.end()) return;  // removed meanwhile
    who = found->second.who;
    if (answer->cancelled && answer->compacted == 0) {
      const bool denied = answer->reason.find("permission denied") != std::string::npos;
      news.refused = error{denied ? errc::denied : errc::unavailable,
                           "etcd: watch " + found->second.of.key + ": " + answer->reason};
      watches_.erase(found);
    } else if (answer->cancelled) {
      way_->send(stream_, watch_create(found->second.of, answer->id, found->second.without));
      return;
    }
    news.created = answer->created;
  }
  news.events = answer->events;
  if (news.created || news.refused || !news.events.empty()) (*who)(news);
}

void watch_hub::stream_ended(std::uint64_t stream, const error& /*why*/) {
  const std::scoped_lock lock(mutex_);
  if (stream != stream_) return;
  stream_ = 0;
  const time_point now = reactor_->now();
  backoff_.succeeded(now - began_);
  if (watches_.empty() || closed_) return;
  begin_again(now + backoff_.next(reactor_->random()));
}

// Called with the mutex held.
void watch_hub::begin_again(time_point when) {
  pausing_ = true;
  timer_ = reactor_->at(when, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const std::scoped_lock lock(self->mutex_);
    self->pausing_ = false;
    if (self->stream_ == 0) self->open_stream();
  });
}

void watch_hub::close() noexcept {
  if (reactor_->forked()) return;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    watches_.clear();
    reactor_->cancel(timer_);
  }
  way_->close();
}

}  // namespace holdfast::etcd
