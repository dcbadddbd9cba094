// One connection to a server, whatever its protocol: connecting, greeting, open, over. Never reused
// after that: a late answer must not be taken for another request's. Each engine adds its greeting
// and its frames.
#pragma once

#include "net/connector.hpp"
#include "net/stream.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace holdfast::net {

// Thread-safe. The destructor of what derives from it calls close(), unless the process was forked.
class link_base : public stream_user {
 public:
  link_base(const link_base&) = delete;
  link_base& operator=(const link_base&) = delete;

  void flush() noexcept { stream_->flush(); }  // only once opened
  [[nodiscard]] const target& where() const noexcept { return where_; }

  // Like net::stream's: no callback afterwards; not to be called under a lock that the callbacks
  // take.
  void close() noexcept;

  // From the stream.
  void ended(const error& why) override;

 protected:
  // `engine`: for messages.
  link_base(network net, target where, std::shared_ptr<const tls_context> tls, const char* engine);
  ~link_base() override = default;

  // `late`: what was missing at the deadline ("no greeting in time"). `self`: the object that
  // derives from this.
  void connect(std::weak_ptr<link_base> self, time_point deadline, const char* late);
  // Called with the mutex held when the greeting is over. Returns the timer, to be cancelled once
  // the mutex is free.
  [[nodiscard]] spi::runtime::timer_id greeted();
  // Ends it, and notifies the user, once.
  void fail(const error& why);

  // For messages: "redis 127.0.0.1:6379: what"
  [[nodiscard]] error problem(const std::string& what) const;
  // The stream's error, prefixed with the engine.
  [[nodiscard]] error named(const error& why) const;

  // There is a stream. Starts it, and greets.
  virtual void connected() = 0;
  // The error for a connection that could not be made.
  [[nodiscard]] virtual error unreachable(const error& why) const;
  virtual void tell_end(const error& why) = 0;
  // Ends what else is under way; once, within close().
  virtual void closing() noexcept {}

  const network net_;
  const runtime::fork_guard guard_;
  // Set before connected() is called, and not changed after it.
  std::shared_ptr<stream> stream_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::shared_ptr<connector> connector_;
  bool over_ = false;

 private:
  void take_stream(result<std::shared_ptr<stream>> made);

  const target where_;
  const std::shared_ptr<const tls_context> tls_;
  const char* const engine_;
  spi::runtime::timer_id timer_ = 0;  // for the greeting; guarded by mutex_
};

}  // namespace holdfast::net
