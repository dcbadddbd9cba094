// Events, kept until they are asked for.
#include "c/client.hpp"
#include "c/lock.hpp"
#include "c/signal_fd.hpp"

#include <deque>
#include <mutex>

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

// What an hf_watch is made of.
struct watch_inside {
  std::shared_ptr<event_buffer> events = std::make_shared<event_buffer>();
  std::mutex mutex;
  kept_event last;  // guarded by mutex; its strings are lent to the caller
  std::unique_ptr<subscription> source;
};

}  // namespace holdfast::c

struct hf_watch {
  holdfast::c::home made_in{};
  holdfast::c::watch_inside inside;
};

namespace holdfast::c {

extern "C" {

hf_status hf_observe(const hf_client* client, const char* name, size_t name_length,
                     hf_watch** watch, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    if (watch == nullptr) return missing("watch");
    auto made = std::make_unique<hf_watch>();
    auto source = client->inside.observe(
        std::string(text_of(name, name_length)),
        [events = made->inside.events](const lock_event& event) { events->push(kept(event)); });
    if (!source) return tl::unexpected(std::move(source.error()));
    made->inside.source = std::move(*source);
    *watch = made.release();
    return {};
  });
}

hf_status hf_leader_watch(const hf_lock* lock, hf_watch** watch, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto found = as_kind<election>(lock, "election");
    if (!found) return tl::unexpected(found.error());
    if (watch == nullptr) return missing("watch");
    auto made = std::make_unique<hf_watch>();
    auto source = (*found)->observe(
        [events = made->inside.events, name = (*found)->name()](
            const std::optional<leader_info>& leader) { events->push(kept(name, leader)); });
    if (!source) return tl::unexpected(std::move(source.error()));
    made->inside.source = std::move(*source);
    *watch = made.release();
    return {};
  });
}

hf_status hf_watch_next(hf_watch* watch, hf_event* event, hf_error* error) {
  try {
    if (const auto wrong = check(watch, "watch"); !wrong) return report(error, wrong);
    if (event == nullptr) return report(error, result<void>(missing("event")));
    auto next = watch->inside.events->pop();
    if (!next) return report(error, HF_PENDING, "no event yet");
    const std::lock_guard lock(watch->inside.mutex);
    kept_event& last = watch->inside.last = std::move(*next);
    hf_event made{};
    made.name = to_text(last.name);
    made.claim = to_text(last.claim);
    made.payload = to_text(last.payload);
    made.fence = last.fence;
    made.kind = last.kind;
    made.mode = static_cast<std::int32_t>(last.mode);
    return report(error, write_struct(event, made, "event"));
  } catch (...) {
    return report_exception(error);
  }
}

int hf_watch_fd(const hf_watch* watch) {
  return watch == nullptr || watch->made_in.left() ? -1 : watch->inside.events->fd();
}

void hf_watch_free(hf_watch* watch) { delete watch; }
}

}  // namespace holdfast::c
