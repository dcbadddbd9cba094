// A listener of a lane's channel that follows the lane from node to node.
#pragma once

#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/node.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace holdfast::redis {

// Thread-safe. The listener is called under no lock, one call at a time, in the order of the events.
//
// What must hold:
//  1. What the node that was left says is not passed on: a grant of a former master is none.
//  2. Between two nodes the listener hears interrupted(), then confirmed() of the new one.
//  3. A server that has no sharded channels (before 7) is asked for a classic one instead; the
//     scripts decide by the same version.
class roamer final : public std::enable_shared_from_this<roamer> {
 public:
  // Events that wait for the listener; beyond, messages are dropped: whoever waits asks again.
  static constexpr std::size_t event_limit = 100'000;

  // `troubled`: told when the node does not, or not any more, serve the channel.
  roamer(channel_id channel, std::weak_ptr<channel_listener> listener,
         std::function<void()> troubled);
  ~roamer();
  roamer(const roamer&) = delete;
  roamer& operator=(const roamer&) = delete;

  // Listens there from now on. `version` grows with every move; an older one is ignored.
  void go(const std::shared_ptr<node>& to, std::uint64_t version);
  // A call that has begun goes on.
  void end() noexcept;

 private:
  class relay;
  struct event {
    enum class kind : std::uint8_t { confirmed, message, interrupted };

    kind what = kind::confirmed;
    std::string payload;
    error why;
  };
  using mutex_lock = std::unique_lock<std::mutex>;

  void listen_there(mutex_lock& lock);
  void take(std::uint64_t token, event what);
  void deliver(mutex_lock& lock);

  const std::weak_ptr<channel_listener> listener_;
  const std::function<void()> troubled_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  channel_id channel_;
  std::shared_ptr<node> node_;
  std::uint64_t version_ = 0;
  std::uint64_t token_ = 0;  // of the relay that is listened to
  std::shared_ptr<relay> relay_;
  std::unique_ptr<spi::subscription> subscription_;
  std::deque<event> events_;
  bool delivering_ = false;
  bool ended_ = false;
};

}  // namespace holdfast::redis
