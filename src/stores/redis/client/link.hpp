// A connection to a server: net/link.hpp, with a greeting and then replies in the order of the commands.
#pragma once

#include "net/connector.hpp"
#include "net/link.hpp"
#include "net/stream.hpp"
#include "stores/redis/client/greeting.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/function.hpp>
#include <holdfast/spi/reactor.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// A server's answer to a first packet, on a separate connection: this is how a client that gets
// stuck finds out whether the other end speaks TLS.

// The beginning of a TLS handshake that is also a line: a server that speaks TLS answers with a
// record, even if only an alert; Redis without TLS says that it does not know the command.
std::string client_hello();
bool is_tls_record(std::string_view bytes) noexcept;

// Thread-safe.
class first_words final : public net::stream_user,
                          public std::enable_shared_from_this<first_words> {
 public:
  using answer = spi::function<void(std::string)>;

  // `done`: once, by the deadline, possibly before this returns, under no lock. Empty: the server
  // did not answer, or was not reached.
  static std::shared_ptr<first_words> ask(const net::network& net, const net::target& where,
                                          std::string packet, time_point deadline, answer done);
  // `done` is not called any more, but a call that has begun is completed.
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

class link;

// Called on the reactor's threads (or from within start()), under no lock, never
// concurrently for one link.
class link_user {
 public:
  virtual ~link_user() = default;
  virtual void opened(link& which, const server_info& server) = 0;
  // All replies that came with one read; the user may move from them.
  virtual void received(link& which, std::vector<reply>& replies) = 0;
  // Once, as the last call; not after close(). denied and unsupported: an
  // immediate retry is useless.
  virtual void ended(link& which, const error& why) = 0;
};

// Thread-safe.
class link final : public net::link_base, public std::enable_shared_from_this<link> {
 public:
  // Does nothing before start(). The caller keeps `options` and what they refer to alive.
  link(net::network net, std::shared_ptr<const server_options> options,
       std::weak_ptr<link_user> user);
  ~link() override;

  void start();

  // Only once opened. Like net::stream's: queue() under the caller's lock, flush() outside it.
  void queue(std::string_view bytes) { stream_->queue(bytes); }
  [[nodiscard]] std::size_t unsent() const noexcept { return stream_->unsent(); }

  // For messages, before it is opened: what takes so long.
  [[nodiscard]] const char* progress();

  // From the stream.
  void received(std::string_view bytes) override;
  void ended(const error& why) override;

 private:
  void doubt_soon();
  void doubt();
  [[nodiscard]] bool shaking_hands();
  void ask(void (*then)(link&, const std::string&));
  [[nodiscard]] error with_tls() const;
  [[nodiscard]] error without_tls() const;
  void connected() override;
  [[nodiscard]] error unreachable(const error& why) const override;
  void tell_end(const error& why) override;
  void closing() noexcept override;
  bool greet(std::vector<reply>& replies, link_user& user);
  void send_greeting();

  const std::shared_ptr<const server_options> options_;
  const std::weak_ptr<link_user> user_;

  // Only within the stream's callbacks.
  greeting greeting_;
  reply_reader reader_;
  std::vector<reply> replies_;
  bool spoken_ = false;  // the server has sent something
  bool greeted_ = false;
  error hung_up_;  // how it ended before it sent anything

  // Guarded by mutex_.
  std::shared_ptr<first_words> asking_;     // does it speak TLS?
  spi::runtime::timer_id doubt_timer_ = 0;  // for the TLS handshake
};

}  // namespace holdfast::redis
