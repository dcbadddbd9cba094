// Resolves names to addresses without ever blocking the engine: the system's resolver may take tens
// of seconds, so it is called on separate threads, and each waiter has a deadline.
#pragma once

#include "net/address.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::net {

// Thread-safe. One look-up per host at a time, however many callers ask. The last good addresses of
// a host are kept: they are the answer if a look-up fails or is slow, since the name server may be
// down while the server is not.
//
// Destroying it abandons what is under way: threads inside the system's resolver cannot be stopped,
// and end by themselves when it returns.
class resolver {
 public:
  using lookup = std::function<result<addresses>(const std::string& host)>;

  static constexpr std::size_t worker_limit = 4;  // then hosts queue
  static constexpr std::size_t queue_limit = 64;  // then unavailable
  static constexpr std::size_t cache_limit = 256;
  // How long to wait for a fresh answer when an old one is known.
  static constexpr duration patience = std::chrono::milliseconds(500);

  // `ask` blocks; tests give one that is slow on purpose.
  explicit resolver(std::shared_ptr<spi::reactor> reactor, lookup ask = look_up);
  ~resolver();
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;

  // Numeric hosts are answered before the call returns, others on the reactor. unavailable at the
  // deadline; cancelled in a forked child.
  void resolve(const std::string& host, std::uint16_t port, time_point deadline,
               spi::completion<addresses> done);

 private:
  struct state;

  const runtime::fork_guard guard_;
  std::shared_ptr<state> state_;
};

}  // namespace holdfast::net
