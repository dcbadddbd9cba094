// From a target to a stream: resolves, connects, and does the TLS handshake if TLS is wanted; all
// of it within one deadline, none of it blocking.
#pragma once

#include "net/address.hpp"
#include "net/resolver.hpp"
#include "net/socket_stream.hpp"
#include "net/stream.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace holdfast::net {

// Connects to the first of several addresses that answers. They are tried in turn, and a silent one
// does not delay the next: that one starts a little later, in parallel (RFC 8305, simplified).

// Thread-safe. Ends exactly once: connected, refused by all, out of time, or cancelled (then
// without a call). The reactor keeps it until then.
class dialer : public std::enable_shared_from_this<dialer> {
 public:
  // A silent address has this long to itself.
  static constexpr duration head_start = std::chrono::milliseconds(250);
  static constexpr std::size_t address_limit = 16;  // the rest is not tried

  // `done` may be called before start() returns. Reports the last refusal if there is no success.
  static std::shared_ptr<dialer> start(std::shared_ptr<spi::reactor> reactor, const addresses& to,
                                       time_point deadline,
                                       spi::completion<runtime::descriptor> done);
  void cancel() noexcept;

 private:
  struct attempt {
    address to;
    runtime::descriptor socket;
    spi::reactor::watch_id watch = 0;
  };
  using attempt_ptr = std::shared_ptr<attempt>;

  dialer(std::shared_ptr<spi::reactor> reactor, addresses to,
         spi::completion<runtime::descriptor> done);

  void proceed();
  void begin(const address& to);
  void ready(const attempt_ptr& mine);
  void finish(result<runtime::descriptor> outcome);
  void release(const std::vector<attempt_ptr>& ended) noexcept;

  const std::shared_ptr<spi::reactor> reactor_;
  const addresses addresses_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  spi::completion<runtime::descriptor> done_;
  std::size_t next_ = 0;
  std::vector<attempt_ptr> attempts_;  // under way
  std::optional<error> refusal_;       // the last one
  spi::runtime::timer_id deadline_timer_ = 0;
  spi::runtime::timer_id stagger_timer_ = 0;
  bool over_ = false;
};

// Address families alternate, since one of them may be broken entirely.
addresses interleaved(const addresses& from);

class dialer;
class tls_stream;

// What a store needs from the network, made once per store.
struct network {
  std::shared_ptr<spi::reactor> reactor;
  std::shared_ptr<net::resolver> resolver;
};
network make_network(std::shared_ptr<spi::reactor> reactor);

// One connection being made. Thread-safe; ends once, by its deadline at the latest.
class connector : public std::enable_shared_from_this<connector> {
 public:
  // `tls`: null for none. `done` may be called before start() returns; it starts the stream that it
  // is given. unavailable: no answer, or not reached; denied: a certificate is refused.
  static std::shared_ptr<connector> start(network net, target where,
                                          std::shared_ptr<const tls_context> tls,
                                          time_point deadline,
                                          spi::completion<std::shared_ptr<stream>> done);
  // `done` is not called any more, but a call that has begun goes on.
  void cancel() noexcept;

  // For messages: what is taking so long. "in the TLS handshake"
  [[nodiscard]] const char* progress();
  // Connected, and in the TLS handshake.
  [[nodiscard]] bool shaking_hands();

 private:
  connector(network net, target where, std::shared_ptr<const tls_context> tls, time_point deadline,
            spi::completion<std::shared_ptr<stream>> done);

  void begin();
  void dial(const addresses& to);
  void connected(runtime::descriptor socket);
  void shake(std::shared_ptr<stream> carrier);
  void finish(result<std::shared_ptr<stream>> outcome);

  const network net_;
  const target where_;
  const std::shared_ptr<const tls_context> tls_;
  const time_point deadline_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  spi::completion<std::shared_ptr<stream>> done_;
  std::shared_ptr<dialer> dialer_;
  std::shared_ptr<tls_stream> shaking_;
  spi::runtime::timer_id timer_ = 0;
  bool over_ = false;
};

}  // namespace holdfast::net
