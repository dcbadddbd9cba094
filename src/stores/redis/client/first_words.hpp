// What a server answers to a first packet, on a connection of its own: how a client that gets no further
// finds out whether the other end speaks TLS.
#pragma once

#include "net/connector.hpp"
#include "net/stream.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/function.hpp>
#include <holdfast/spi/reactor.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace holdfast::redis {

// The beginning of a TLS handshake that is a line, too: a server that speaks TLS answers with a record, be
// it an alert; Redis without TLS says that it does not know the command.
std::string client_hello();
bool is_tls_record(std::string_view bytes) noexcept;

// Thread-safe.
class first_words final : public net::stream_user,
                          public std::enable_shared_from_this<first_words> {
 public:
  using answer = spi::function<void(std::string)>;

  // `done`: once, by the deadline, possibly before this returns, under no lock. Empty: the server said
  // nothing, or was not reached.
  static std::shared_ptr<first_words> ask(const net::network& net, const net::target& where,
                                          std::string packet, time_point deadline, answer done);
  // `done` is not called any more, but a call that has begun goes on.
  void cancel() noexcept;

  first_words(net::network net, std::string packet, answer done);

  // From the stream.
  void received(std::string_view bytes) override { finish(std::string(bytes)); }
  void ended(const error&) override { finish({}); }

 private:
  void connected(result<std::shared_ptr<net::stream>> made);
  void finish(std::string said);

  const net::network net_;
  const std::string packet_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  answer done_;  // empty: it is over
  std::shared_ptr<net::connector> connector_;
  std::shared_ptr<net::stream> stream_;
  spi::runtime::timer_id timer_ = 0;
};

}  // namespace holdfast::redis
