// Events for metrics, logs and tracing, the same on every engine.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

enum class event_kind : std::uint8_t {
  granted,            // `took`: how long it was waited for
  busy,               // not granted in time: busy or timed_out
  failed,             // an acquisition that ended with another error
  released,           // `took`: how long it was held
  lost,               // `cause` says how
  renewed,            // a renewal was answered
  renewal_failed,     // no usable answer, `cause` says why; goes on until validity ends
  release_pending,    // a release got no answer; goes on in the background
  release_abandoned,  // nobody could be told; the ttl ends it
  self_wait,          // an acquire waits for a lock that this client holds already
  foreign_unlock,     // a plain mutex was unlocked by another thread
  handed_over,        // passed on inside the process, without the engine
  callback_threw,     // user code threw out of a callback
  // No connection to the engine can be made, or its breaker is open; `cause` says why. Told once, until
  // it is back.
  engine_unreachable,
  engine_back,  // it answers again
  degraded,     // granted by a stand-in, beside `granted`: it keeps no other process out
};

std::string_view to_string(event_kind kind) noexcept;

struct event {
  event_kind kind{};
  std::string_view name;   // valid during the call
  std::string_view claim;  // public id
  fence_token fence;
  duration took{};
  const error* cause = nullptr;
};

// Called on the client's notifier thread, one event at a time. Must not block for long; must not
// throw (a throw is swallowed).
class observer {
 public:
  virtual ~observer() = default;
  virtual void on_event(const event& event) = 0;
};

}  // namespace holdfast
