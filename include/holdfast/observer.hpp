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
  lost,               // `loss` and `cause` say how; `took`: how long it was held
  renewed,            // a renewal was answered
  renewal_failed,     // no usable answer, `cause` says why; goes on until validity ends
  release_pending,    // a release got no answer; goes on in the background
  release_abandoned,  // the engine could not be told; the ttl ends it
  self_wait,          // an acquire waits for a lock that this client already holds
  foreign_unlock,     // a plain mutex was unlocked by another thread
  handed_over,        // passed on inside the process, without the engine
  callback_threw,     // user code threw out of a callback
  // No connection to the engine can be made, or its breaker is open; `cause` says why. Raised once,
  // until it is back.
  engine_unreachable,
  engine_back,  // it answers again
  degraded,     // granted by the local fallback, besides `granted`: it excludes no other process
};

std::string_view to_string(event_kind kind) noexcept;

// What a lock is to its user; recursive mutexes and the parts of a multi-lock are mutexes.
enum class primitive : std::uint8_t { none, mutex, reader, writer, semaphore, election };

std::string_view to_string(primitive kind) noexcept;

// How a lease was lost.
enum class loss_cause : std::uint8_t {
  none,
  unconfirmed,  // no renewal was answered before its validity ended
  ended,        // it is not renewed, and its ttl has passed
  taken,  // the engine no longer has it: released by force, revoked, its session ended, state lost
  max_hold,  // held for its longest time
  closed,    // the client was closed
};

std::string_view to_string(loss_cause cause) noexcept;

struct event {
  event_kind kind{};
  std::string_view name;   // valid during the call
  std::string_view claim;  // public id
  fence_token fence;
  duration took{};
  const error* cause = nullptr;
  std::string_view engine;                                    // as capabilities::engine
  holdfast::primitive primitive = holdfast::primitive::none;  // none: of no lock
  loss_cause loss = loss_cause::none;                         // with lost
};

// Called on the client's notifier thread, one event at a time. Must not block for long; must not
// throw (exceptions are swallowed).
class observer {
 public:
  virtual ~observer() = default;
  virtual void on_event(const event& event) = 0;
};

}  // namespace holdfast
