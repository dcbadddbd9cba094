// From a target to a stream: resolve, connect, and shake hands where TLS is wanted; all of it
// within one deadline, none of it blocking.
#pragma once

#include "net/resolver.hpp"
#include "net/stream.hpp"
#include "net/target.hpp"
#include "net/tls_context.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>

namespace holdfast::net {

class dialer;
class tls_stream;

// What a store needs of the network, made once per store.
struct network {
  std::shared_ptr<spi::reactor> reactor;
  std::shared_ptr<net::resolver> resolver;
};
network make_network(std::shared_ptr<spi::reactor> reactor);

// One connection being made. Thread-safe; ends once, by its deadline at the latest.
class connector : public std::enable_shared_from_this<connector> {
 public:
  // `tls`: null for none. `done` may be called before start() returns; whoever gets the stream
  // starts it from within. unavailable: no answer, or not reached; denied: a certificate is
  // refused.
  static std::shared_ptr<connector> start(network net, target where,
                                          std::shared_ptr<const tls_context> tls,
                                          time_point deadline,
                                          spi::completion<std::shared_ptr<stream>> done);
  // `done` is not called any more, but a call that has begun goes on.
  void cancel() noexcept;

  // For messages: what takes so long. "in the TLS handshake"
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
