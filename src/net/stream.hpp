// A connection as bytes, whatever carries it: TCP, a unix socket, TLS. Everything that is received
// arrives through the reactor's callbacks; what is sent goes out on the sending thread.
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace holdfast::net {

// The user of a stream. Called on the reactor's threads, under no lock, never concurrently for one
// stream.
class stream_user {
 public:
  virtual ~stream_user() = default;
  virtual void received(std::string_view bytes) = 0;
  // The connection is over: closed by the peer, or broken. Called once, after everything received.
  virtual void ended(const error& why) = 0;
};

// Thread-safe. Used once: when it has ended it stays so. In a forked child no call does anything,
// and the parent's connection stays as it is.
class stream {
 public:
  // More than this never piles up with a healthy peer: senders should refuse work.
  static constexpr std::size_t unsent_limit = std::size_t{64} * 1024 * 1024;

  virtual ~stream() = default;

  // Begins to receive. Called once. The user may end before the stream; then it is not called.
  virtual void start(std::weak_ptr<stream_user> user) = 0;

  // Appends bytes to what will be sent, in the order of the calls. No I/O and no callback: may be
  // called under a lock of the caller's, where that order matters.
  virtual void queue(std::string_view bytes) = 0;
  // Sends what was queued, now and on this thread. If another thread is already sending, it sends
  // ours too: many threads share one write. What the peer does not accept now is sent when it does.
  // A failure is reported by ended().
  virtual void flush() noexcept = 0;
  // Bytes that are queued and not yet passed to the system.
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;

  // No callback runs after it has returned, unless it is called from within one. Not to be called
  // under a lock that the callbacks take.
  virtual void close() noexcept = 0;
};

}  // namespace holdfast::net
