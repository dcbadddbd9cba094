#include "stores/etcd/watch_hub.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr duration pulse_pause = std::chrono::seconds(3);
constexpr duration pulse_limit = std::chrono::seconds(10);  // the channel gives a member up earlier

}  // namespace

watch_hub::watch_hub(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way,
                     net::backoff_limits pauses)
    : reactor_(std::move(reactor)), way_(std::move(way)), backoff_(pauses) {}

watch_hub::watch_id watch_hub::add(key_range of, watch_filter without, watcher who) {
  if (reactor_->forked()) return 0;
  const std::scoped_lock lock(mutex_);
  const watch_id id = next_++;
  if (closed_) return id;
  one_watch& made =
      watches_
          .emplace(id, one_watch{std::move(of), without, std::make_shared<watcher>(std::move(who))})
          .first->second;
  if (stream_ != 0) {
    made.late = true;
    way_->send(stream_, create(id, made));
  } else if (!pausing_) {
    open_stream();
  }
  wake_pulse();
  return id;
}

void watch_hub::remove(watch_id id) {
  if (reactor_->forked()) return;
  const std::scoped_lock lock(mutex_);
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  const std::int64_t wire = found->second.wire;
  watches_.erase(found);
  if (wires_.erase(wire) != 0 && stream_ != 0) way_->send(stream_, watch_cancel(wire));
}

// Called with the mutex held.
std::string watch_hub::create(watch_id id, one_watch& which) {
  wires_.erase(which.wire);
  which.wire = next_wire_++;
  wires_.emplace(which.wire, id);
  asked_.push_back(which.wire);
  return watch_create(which.of, which.wire, which.without);
}

// Called with the mutex held.
void watch_hub::open_stream() {
  if (watches_.empty() || closed_) return;
  began_ = reactor_->now();
  wires_.clear();
  asked_.clear();
  for (auto& [id, each] : watches_) {
    each.late = false;
    std::string body = create(id, each);
    if (stream_ == 0) {
      stream_ = way_->open_stream(method::watch, std::move(body), weak_from_this());
    } else {
      way_->send(stream_, body);
    }
  }
}

void watch_hub::message(std::uint64_t stream, const std::string& body) {
  const auto answer = read_watch(body);
  std::shared_ptr<watcher> who;
  watch_news news;
  {
    const std::scoped_lock lock(mutex_);
    if (stream != stream_) return;
    if (!answer) return restart(channel::credentials::as_they_are);  // what it reported is lost
    const auto wire = find(*answer);
    if (wire == wires_.end()) return;  // removed meanwhile
    const watch_id id = wire->second;
    who = watches_.at(id).who;
    if (answer->cancelled) {
      news.refused = take_cancel(id, *answer);
      if (!news.refused) return;
    }
    news.created = answer->created && !answer->cancelled;
  }
  news.events = answer->events;
  if (news.created || news.refused || !news.events.empty()) (*who)(news);
}

// Called with the mutex held. A watch that was not created may have no number:
// they are answered in order.
std::map<std::int64_t, watch_hub::watch_id>::iterator watch_hub::find(const watch_answer& answer) {
  std::int64_t wire = answer.id;
  if (answer.created) {
    if (answer.cancelled && wire < 0 && !asked_.empty()) wire = asked_.front();
    std::erase(asked_, wire);
  }
  return wires_.find(wire);
}

// Called with the mutex held. Watches that the server cancels by itself are created again,
// except where we lack permission. A stream on which it has refused something is useless: etcd
// 3.4 reads nothing more from it.
std::optional<error> watch_hub::take_cancel(watch_id id, const watch_answer& answer) {
  one_watch& which = watches_.at(id);
  if (answer.compacted != 0) {
    way_->send(stream_, create(id, which));
    return std::nullopt;
  }
  // On a stream whose token has expired everything is denied.
  if (which.late || answer.reason.find("permission denied") == std::string::npos) {
    restart(channel::credentials::new_token);
    return std::nullopt;
  }
  error why{errc::denied, "etcd: watch " + which.of.key + ": " + answer.reason};
  watches_.erase(id);
  restart(channel::credentials::as_they_are);
  return why;
}

// Called with the mutex held.
void watch_hub::restart(channel::credentials how) {
  way_->abandon(std::exchange(stream_, 0), how);
  if (watches_.empty()) return;
  const time_point now = reactor_->now();
  backoff_.succeeded(now - began_);
  begin_again(now + backoff_.next(reactor_->random()));
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

// Called with the mutex held.
void watch_hub::wake_pulse() {
  if (closed_ || watches_.empty() || std::exchange(pulsing_, true)) return;
  pulse_timer_ = reactor_->at(reactor_->now() + pulse_pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) pulse(self);
  });
}

// Without an answer the channel leaves the member, which ends the stream.
flow watch_hub::pulse(std::shared_ptr<watch_hub> self) {
  bool asks = false;
  {
    const std::scoped_lock lock(self->mutex_);
    asks = self->stream_ != 0 && !self->closed_ && !self->watches_.empty();
  }
  if (asks) {
    std::vector<call> batch;
    batch.push_back({method::status, {}});
    const net::patience until(self->reactor_->now() + pulse_limit);
    static_cast<void>(co_await asking(self->way_, std::move(batch), until));
  }
  const std::scoped_lock lock(self->mutex_);
  self->pulsing_ = false;
  self->wake_pulse();
}

void watch_hub::close() noexcept {
  if (reactor_->forked()) return;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    watches_.clear();
    wires_.clear();
    reactor_->cancel(timer_);
    reactor_->cancel(pulse_timer_);
  }
  way_->close();
}

namespace {

constexpr duration spare_time =
    std::chrono::seconds(1);  // a watch that nobody uses stays one to two of these

}  // namespace

std::shared_ptr<blocker_watches::interest> blocker_watches::add(const std::string& what,
                                                                watch_filter without,
                                                                std::int64_t seen,
                                                                std::function<void()> look) {
  auto made = std::make_shared<interest>(interest{seen, std::move(look)});
  const name which(what, without);
  bool late = false;
  {
    const std::scoped_lock lock(mutex_);
    if (closed_) return made;
    const auto [found, fresh] = watches_.try_emplace(which);
    one_watch& watch = found->second;
    watch.used = true;
    watch.interests.push_back(made);
    late = watch.latest > seen;
    if (fresh) {
      watch.id = hub_->add(keys_with(what), without,
                           [weak = weak_from_this(), which](const watch_news& news) {
                             if (const auto self = weak.lock()) self->tell(which, news);
                           });
      wake_tidying();
    }
  }
  if (late) made->look();
  return made;
}

void blocker_watches::tell(const name& which, const watch_news& news) {
  if (news.refused) return;
  std::vector<std::shared_ptr<interest>> those;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = watches_.find(which);
    if (found == watches_.end()) return;
    one_watch& watch = found->second;
    // What happened before it existed is unknown, and revisions may have
    // started over: any event counts.
    if (news.created) watch.latest = 0;
    std::int64_t latest = 0;
    for (const auto& each : news.events) latest = std::max(latest, each.kv.modified);
    watch.latest = std::max(watch.latest, latest);
    std::erase_if(watch.interests, [&](const std::weak_ptr<interest>& each) {
      auto alive = each.lock();
      if (alive == nullptr) return true;
      if (news.created) alive->seen = 0;
      if (news.created || latest > alive->seen) those.push_back(std::move(alive));
      return false;
    });
  }
  for (const auto& each : those) each->look();
}

// Called with the mutex held.
void blocker_watches::wake_tidying() {
  if (closed_ || std::exchange(tidying_, true)) return;
  timer_ = reactor_->at(reactor_->now() + spare_time, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tidy();
  });
}

void blocker_watches::tidy() {
  const std::scoped_lock lock(mutex_);
  tidying_ = false;
  if (closed_) return;
  for (auto each = watches_.begin(); each != watches_.end();) {
    one_watch& watch = each->second;
    std::erase_if(watch.interests, [](const auto& one) { return one.expired(); });
    if (std::exchange(watch.used, false) || !watch.interests.empty()) {
      ++each;
      continue;
    }
    hub_->remove(watch.id);
    each = watches_.erase(each);
  }
  if (!watches_.empty()) wake_tidying();
}

void blocker_watches::close() noexcept {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  watches_.clear();
  reactor_->cancel(timer_);
}

}  // namespace holdfast::etcd
