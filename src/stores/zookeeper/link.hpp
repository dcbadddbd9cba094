// One life of a connection to a server: connected, greeted, then frames, then its end. Never used
// again after that.
#pragma once

#include "net/connector.hpp"
#include "net/stream.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/protocol.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::zookeeper {

class link;

// Called on the reactor's threads (or from within start()), under no lock, never twice at once for
// one link.
class link_user {
 public:
  virtual ~link_user() = default;
  // The server's greeting; its session is 0 where ours has expired.
  virtual void opened(link& which, const greeting& theirs) = 0;
  // All frames that came with one read, without their lengths.
  virtual void received(link& which, const std::vector<std::string>& frames) = 0;
  // Once, and last; not after close().
  virtual void ended(link& which, const error& why) = 0;
};

// Thread-safe.
class link final : public net::stream_user, public std::enable_shared_from_this<link> {
 public:
  static constexpr std::size_t frame_limit = std::size_t{64} * 1024 * 1024;  // of what is received

  // Does nothing before start().
  link(net::network net, net::target where, std::shared_ptr<const server_options> options,
       greeting mine, std::weak_ptr<link_user> user);
  ~link() override;
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void start(time_point deadline);

  // Only once opened. As net::stream's: queue() under the caller's lock, flush() outside it.
  void queue(std::string_view bytes) { stream_->queue(bytes); }
  void flush() noexcept { stream_->flush(); }
  [[nodiscard]] std::size_t unsent() const noexcept { return stream_->unsent(); }

  // When the greeting left; once opened.
  [[nodiscard]] time_point greeted_at() const noexcept { return greeted_at_; }
  [[nodiscard]] const net::target& where() const noexcept { return where_; }

  // As net::stream's: no call afterwards, not under a lock that the calls take.
  void close() noexcept;

  // From the stream.
  void received(std::string_view bytes) override;
  void ended(const error& why) override;

 private:
  void connected(result<std::shared_ptr<net::stream>> made);
  bool greet(const std::string& frame, link_user& user);
  void fail(const error& why);

  const net::network net_;
  const net::target where_;
  const std::shared_ptr<const server_options> options_;
  const greeting mine_;
  const std::weak_ptr<link_user> user_;
  const runtime::fork_guard guard_;
  // Set before opened() is called, and not changed after it.
  std::shared_ptr<net::stream> stream_;
  time_point greeted_at_{};

  // Only within the stream's callbacks.
  std::string incoming_;
  bool greeted_ = false;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::shared_ptr<net::connector> connector_;
  spi::runtime::timer_id timer_ = 0;  // for the greeting
  bool over_ = false;
};

}  // namespace holdfast::zookeeper
