// Events, kept until they are asked for.
#include "c/handles.hpp"

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::c {

namespace {

struct kept_event {
  std::int32_t kind = 0;
  std::string name{};
  std::string claim{};
  std::string payload{};
  std::uint64_t fence = 0;
  lock_mode mode = lock_mode::exclusive;
};

// Thread-safe.
class event_buffer {
 public:
  void push(kept_event event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() == HF_WATCH_LIMIT) {
      events_.pop_front();
      events_.front() = {.kind = HF_EVENT_MISSED};
    }
    events_.push_back(std::move(event));
    if (events_.size() == 1) ready_.set();
  }
  std::optional<kept_event> pop() {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return std::nullopt;
    kept_event first = std::move(events_.front());
    events_.pop_front();
    if (events_.empty()) ready_.clear();
    return first;
  }
  [[nodiscard]] int fd() const noexcept { return ready_.get(); }

 private:
  const signal_fd ready_;
  std::mutex mutex_;
  std::deque<kept_event> events_;  // guarded by mutex_
};

static_assert(static_cast<int>(lock_event_kind::forced) == HF_EVENT_FORCED);

kept_event kept(const lock_event& event) {
  return {.kind = static_cast<std::int32_t>(event.kind),
          .name = event.name,
          .claim = event.claim,
          .payload = event.payload,
          .fence = event.fence ? event.fence->value() : 0,
          .mode = event.mode};
}

kept_event kept(const std::string& name, const std::optional<leader_info>& leader) {
  if (!leader) return {.kind = HF_EVENT_NO_LEADER, .name = name};
  return {.kind = HF_EVENT_LEADER,
          .name = name,
          .claim = leader->claim,
          .payload = leader->id,
          .fence = leader->fence.value()};
}

}  // namespace

}  // namespace holdfast::c

struct hf_watch {
  holdfast::c::home made_in{};
  std::shared_ptr<holdfast::c::event_buffer> events = std::make_shared<holdfast::c::event_buffer>();
  std::mutex mutex;
  holdfast::c::kept_event last;  // guarded by mutex; the caller borrows its strings
  std::unique_ptr<holdfast::subscription> source;
};

namespace holdfast::c {

extern "C" {

hf_status hf_observe(const hf_client* client, const char* name, size_t name_length,
                     hf_watch** watch, hf_error* error) {
  return guarded(error, [&] {
    const auto& of = use(client, "client").inside;
    need(watch, "watch");
    auto made = std::make_unique<hf_watch>();
    made->source =
        of.observe(std::string(text_of(name, name_length)), [events = made->events](
                                                                const lock_event& event) {
            events->push(kept(event));
          }).value();
    *watch = made.release();
  });
}

hf_status hf_leader_watch(const hf_lock* lock, hf_watch** watch, hf_error* error) {
  return guarded(error, [&] {
    auto& of = as_kind<election>(lock, "election");
    need(watch, "watch");
    auto made = std::make_unique<hf_watch>();
    made->source = of.observe([events = made->events,
                               name = of.name()](const std::optional<leader_info>& leader) {
                       events->push(kept(name, leader));
                     }).value();
    *watch = made.release();
  });
}

hf_status hf_watch_next(hf_watch* watch, hf_event* event, hf_error* error) {
  return guarded(error, [&]() -> hf_status {
    hf_watch& from = use(watch, "watch");
    need(event, "event");
    auto next = from.events->pop();
    if (!next) return report(error, HF_PENDING, "no event yet");
    const std::lock_guard lock(from.mutex);
    kept_event& last = from.last = std::move(*next);
    hf_event made{};
    made.name = to_text(last.name);
    made.claim = to_text(last.claim);
    made.payload = to_text(last.payload);
    made.fence = last.fence;
    made.kind = last.kind;
    made.mode = static_cast<std::int32_t>(last.mode);
    write_struct(event, made, "event");
    return report(error, HF_OK, {});
  });
}

int hf_watch_fd(const hf_watch* watch) {
  return watch == nullptr || watch->made_in.left() ? -1 : watch->events->fd();
}

void hf_watch_free(hf_watch* watch) { delete watch; }
}

}  // namespace holdfast::c
