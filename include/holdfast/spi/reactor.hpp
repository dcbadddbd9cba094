// A runtime that also watches descriptors: what stores with sockets build on.
#pragma once

#include <holdfast/spi/runtime.hpp>

#include <cstdint>
#include <memory>

namespace holdfast::spi {

struct readiness {
  bool readable = false;
  bool writable = false;
  bool hung_up = false;  // error or hang-up: read to learn which
  bool awaited = false;  // perhaps not there yet: reading may sleep for it, see expect()
};

// Thread-safe.
class reactor : public runtime {
 public:
  using watch_id = std::uint64_t;

  // Calls on_ready while the descriptor is ready (level-triggered), on the engine's thread or on
  // one that drives it, never twice at once for one watch, and not after unwatch() has returned,
  // unless unwatch() is called from within it. The descriptor stays the caller's: unwatch, then
  // close.
  virtual watch_id watch(int descriptor, bool readable, bool writable,
                         function<void(readiness)> on_ready) = 0;
  virtual void rewatch(watch_id id, bool readable, bool writable) = 0;
  virtual void unwatch(watch_id id) noexcept = 0;
  // A hint: what the calling thread waits for next will arrive on that descriptor. If that thread
  // is then alone in wait(), on_ready may be called before the descriptor is readable, with
  // `awaited`, and may sleep in the read itself, for some milliseconds at most: nothing else is
  // done meanwhile.
  virtual void expect(watch_id /*id*/) noexcept {}
};

// The production runtime: one engine thread, one notifier thread, epoll, a timerfd on
// CLOCK_BOOTTIME. Destroying it joins both (or detaches from the one it is destroyed on).
std::shared_ptr<reactor> make_reactor();

}  // namespace holdfast::spi
