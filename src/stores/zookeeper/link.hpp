// A connection to a server: net/link.hpp, with a greeting and then frames.
#pragma once

#include "net/link.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/protocol.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::zookeeper {

class link;

// Called on the reactor's threads (or from within start()), under no lock, never
// concurrently for one link.
class link_user {
 public:
  virtual ~link_user() = default;
  // The server's greeting; its session is 0 where ours has expired.
  virtual void opened(link& which, const greeting& theirs) = 0;
  // All frames that came with one read, without their lengths.
  virtual void received(link& which, const std::vector<std::string>& frames) = 0;
  // Once, as the last call; not after close().
  virtual void ended(link& which, const error& why) = 0;
};

// Thread-safe.
class link final : public net::link_base, public std::enable_shared_from_this<link> {
 public:
  static constexpr std::size_t frame_limit = std::size_t{64} * 1024 * 1024;  // of what is received

  // Does nothing before start().
  link(net::network net, net::target where, std::shared_ptr<const server_options> options,
       greeting mine, std::weak_ptr<link_user> user);
  ~link() override;

  void start(time_point deadline);

  // Only once opened. Like net::stream's: queue() under the caller's lock, flush() outside it.
  void queue(std::string_view bytes) { stream_->queue(bytes); }

  // When the greeting was sent; valid once opened.
  [[nodiscard]] time_point greeted_at() const noexcept { return greeted_at_; }

  // From the stream.
  void received(std::string_view bytes) override;

 private:
  void connected() override;
  void tell_end(const error& why) override;
  bool greet(const std::string& frame, link_user& user);

  const greeting mine_;
  const std::weak_ptr<link_user> user_;
  time_point greeted_at_{};  // set before opened() is called, constant afterwards

  // Only within the stream's callbacks.
  std::string incoming_;
  bool greeted_ = false;
};

}  // namespace holdfast::zookeeper
