
#include "stores/redis/event_feed.hpp"

#include "stores/redis/client/reply.hpp"
#include "stores/redis/wire.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::redis {

namespace {

// Calls of user code that stop with end(): none runs afterwards, except one
// that called end() itself.
class calls {
 public:
  template <class Call>
  void make(Call&& call) {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !running_ || runner_ == std::this_thread::get_id(); });
    if (ended_ || running_) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    lock.unlock();
    std::forward<Call>(call)();
    lock.lock();
    running_ = false;
    idle_.notify_all();
  }
  void end() noexcept {
    std::unique_lock lock(mutex_);
    ended_ = true;
    idle_.wait(lock, [this] { return !running_ || runner_ == std::this_thread::get_id(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  bool ended_ = false;      // guarded by mutex_
  bool running_ = false;    // guarded by mutex_
  std::thread::id runner_;  // guarded by mutex_
};

// One observer: listens on one partition or on all, and maintains the marks there.
class observing final : public channel_listener, public std::enable_shared_from_this<observing> {
 public:
  observing(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
            spi::resource_id resource, spi::function<void(const spi::store_event&)> sink)
      : runtime_(std::move(runtime)),
        topology_(std::move(servers)),
        resource_(std::move(resource)),
        sink_(std::move(sink)) {
    if (!resource_.name.empty()) {
      partitions_.push_back(partition_of(resource_));
    } else {
      for (std::size_t i = 0; i < partition_count; ++i)
        partitions_.push_back(static_cast<partition>(i));
    }
    missing_ = 2 * partitions_.size();
  }

  result<void> start() {
    for (const partition each : partitions_) {
      auto made = topology_->listen(each, event_channel(each), weak_from_this());
      if (!made) return tl::unexpected(made.error());
      subscriptions_.push_back(std::move(*made));
    }
    mark();
    return {};
  }

  // Waits until the marks are set and the channels confirmed, or it took too long: an outage is not
  // an error. What the server refuses it will refuse again, and no event would ever come.
  result<void> wait(duration at_most) {
    const auto timer = runtime_->at(runtime_->now() + at_most, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->wake();
    });
    runtime_->wait(ready_);
    runtime_->cancel(timer);
    const std::lock_guard lock(mutex_);
    if (refusal_) return tl::unexpected(*refusal_);
    return {};
  }

  void end() noexcept {
    calls_.end();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    runtime_->cancel(timer_);
  }

  // The next time: there was an outage, and the server may have forgotten the marks.
  void confirmed() override {
    if (ready_.load(std::memory_order_acquire)) mark_anew();
    arrived();
  }
  void interrupted(const error& why) override {
    if (why == errc::denied) refused(why);
  }
  void message(std::string_view payload) override {
    const auto found = events_of(payload);
    if (!found || found->resource.space != resource_.space) return;
    if (!resource_.name.empty() && found->resource.name != resource_.name) return;
    calls_.make([&] {
      for (const spi::store_event& event : found->events) sink_(event);
    });
  }

 private:
  // Once for all partitions that are confirmed together.
  void mark_anew() {
    const std::lock_guard lock(mutex_);
    if (ended_ || std::exchange(marking_, true)) return;
    runtime_->cancel(timer_);
    timer_ = runtime_->at(runtime_->now(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->mark();
    });
  }
  void mark() {
    {
      const std::lock_guard lock(mutex_);
      marking_ = false;
    }
    const time_point now = runtime_->now();
    const auto life = std::chrono::duration_cast<std::chrono::milliseconds>(event_feed::mark_life);
    const std::string text = std::to_string(life.count());
    for (const partition each : partitions_) {
      const std::string key = observed_key(each);
      topology_->send(each, command{"SET", key, "1", "PX", text}, now + event_feed::mark_again,
                      [weak = weak_from_this()](const result<reply>& answer) {
                        const auto self = weak.lock();
                        if (self == nullptr) return;
                        if (answer && !answer->is_error()) return self->arrived();
                        const error why =
                            answer ? to_error(*answer, "SET", "redis") : answer.error();
                        if (why == errc::denied) self->refused(why);
                      });
    }
    const std::lock_guard lock(mutex_);
    if (ended_ || marking_) return;  // the next one is on its way
    runtime_->cancel(timer_);        // of a mark() that ran concurrently
    timer_ = runtime_->at(now + event_feed::mark_again, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->mark();
    });
  }

  void arrived() {
    if (missing_.load() > 0 && missing_.fetch_sub(1) == 1) wake();
  }
  void refused(const error& why) {
    {
      const std::lock_guard lock(mutex_);
      refusal_ = why;
    }
    wake();
  }
  void wake() {
    ready_.store(true, std::memory_order_release);
    runtime_->wake(ready_);
  }

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const spi::resource_id resource_;
  spi::function<void(const spi::store_event&)> sink_;
  calls calls_;
  std::vector<partition> partitions_;
  std::vector<std::unique_ptr<spi::subscription>> subscriptions_;
  std::atomic<std::size_t> missing_{0};
  std::atomic<bool> ready_{false};

  std::mutex mutex_;
  bool ended_ = false;                // guarded by mutex_
  bool marking_ = false;              // guarded by mutex_; mark() is about to run
  spi::runtime::timer_id timer_ = 0;  // guarded by mutex_
  std::optional<error> refusal_;      // guarded by mutex_
};

// A waiter for a latch: notified of changes, and whenever one may have been missed.
class latch_watching final : public channel_listener {
 public:
  latch_watching(std::string tail, spi::latch_watch on_change)
      : tail_(std::move(tail)), on_change_(std::move(on_change)) {}

  void confirmed() override {
    calls_.make([this] { on_change_(); });
  }
  void interrupted(const error&) override {}
  void message(std::string_view payload) override {
    if (tail_.empty() || payload == tail_) confirmed();
  }
  void end() noexcept { calls_.end(); }

  std::unique_ptr<spi::subscription> subscription;

 private:
  const std::string tail_;
  spi::latch_watch on_change_;
  calls calls_;
};

// Destroys what it keeps, unless this is a forked child.
template <class Kept>
class ending final : public spi::subscription {
 public:
  ending(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<Kept> kept)
      : runtime_(std::move(runtime)), kept_(std::move(kept)) {}
  ~ending() override {
    if (!runtime_->forked()) kept_->end();
  }
  ending(const ending&) = delete;
  ending& operator=(const ending&) = delete;

 private:
  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<Kept> kept_;
};

}  // namespace

event_feed::event_feed(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers)
    : runtime_(std::move(runtime)), topology_(std::move(servers)) {}

result<std::unique_ptr<spi::subscription>> event_feed::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  auto made = std::make_shared<observing>(runtime_, topology_, resource, std::move(sink));
  if (auto started = made->start(); !started) return tl::unexpected(std::move(started.error()));
  if (!runtime_->on_own_thread()) {
    if (auto told = made->wait(patience); !told) {
      made->end();
      return tl::unexpected(std::move(told.error()));
    }
  }
  return std::make_unique<ending<observing>>(runtime_, std::move(made));
}

result<std::unique_ptr<spi::subscription>> event_feed::watch_latch(const spi::resource_id& resource,
                                                                   spi::latch_watch on_change) {
  const place where = place_of(resource);
  const auto parsed = parse_state(where.state);
  return watch_channel(where.partition, latch_channel(where.partition), std::string(parsed->tail),
                       std::move(on_change));
}

result<std::unique_ptr<spi::subscription>> event_feed::watch_channel(partition which,
                                                                     const std::string& channel,
                                                                     std::string only,
                                                                     spi::latch_watch on_change) {
  auto made = std::make_shared<latch_watching>(std::move(only), std::move(on_change));
  auto listening = topology_->listen(which, channel, made);
  if (!listening) return tl::unexpected(std::move(listening.error()));
  made->subscription = std::move(*listening);
  return std::make_unique<ending<latch_watching>>(runtime_, std::move(made));
}

}  // namespace holdfast::redis
