// The subscription connection of a node: all channels that this process listens to, over one link
// of its own. Messages sent while it is down are lost; the listeners are notified of that.
#pragma once

#include "net/connector.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/redis/client/greeting.hpp"
#include "stores/redis/client/link.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// The listener of a channel. Called under no lock, on the reactor's threads, in the order of the
// events. Calls may be spurious.
class channel_listener {
 public:
  virtual ~channel_listener() = default;
  // The server has confirmed: from now on nothing is missed. Called again after each reconnection:
  // what happened before must be looked up.
  virtual void confirmed() = 0;
  virtual void message(std::string_view payload) = 0;
  // Messages may be missed, since some earlier time and until the next confirmed(): the connection
  // was lost, or the channel's slot moved away.
  virtual void interrupted(const error& why) = 0;
};

struct channel_id {
  enum class flavour : std::uint8_t { classic, sharded };

  flavour kind = flavour::classic;
  std::string name;

  friend auto operator<=>(const channel_id&, const channel_id&) = default;
};

struct subscriber_limits {
  duration keepalive = std::chrono::seconds(5);  // a silent link is checked after this
  duration answer = std::chrono::seconds(5);     // the time for that answer, or for a
                                                 // subscription's
};

// Thread-safe. Connects, and reconnects, as long as there is a channel to listen to.
//
// What must hold:
//  1. asked_ has the questions (SUBSCRIBE, UNSUBSCRIBE, PING) of the current link in the order of
//     their bytes; the server answers in that order, with messages in between.
//  2. A channel is confirmed when the last question about it was a subscription and is answered.
//  3. An end of a subscription that nobody requested (sunsubscribe, when a slot moves away)
//     is a loss: it is reported, and subscribed again with back-off. The topology may know
//     a better node meanwhile.
class subscriber final : public link_user, public net::reconnecting_connection<subscriber, link> {
 public:
  static constexpr std::size_t channel_limit = 10'000;  // then overloaded

  static std::shared_ptr<subscriber> make(net::network net, server_options options,
                                          subscriber_limits limits = {});
  ~subscriber() override;

  // Listens until the subscription is destroyed; a call that has begun by then is completed.
  // Listeners of one channel share it on the wire. overloaded; cancelled: closed, or forked.
  result<std::unique_ptr<spi::subscription>> subscribe(const channel_id& channel,
                                                       std::weak_ptr<channel_listener> listener);

  // Listeners are not notified of it, and none is called afterwards.
  void close() noexcept;

  void opened(link& which, const server_info& server) override;
  void received(link& which, std::vector<reply>& replies) override;
  void ended(link& which, const error& why) override;

 private:
  class handle;
  friend reconnecting_connection;

  enum class question : std::uint8_t { subscribe, unsubscribe, ping };

  struct asked {
    question what;
    channel_id channel;
    time_point at;
  };
  struct entry {
    std::map<std::uint64_t, std::weak_ptr<channel_listener>> listeners;
    std::size_t questions = 0;  // not yet answered
    bool confirmed = false;
    bool lost = false;  // to be subscribed again
  };
  using channel_map = std::map<channel_id, entry>;
  // A notification to be made once the mutex is free.
  struct notice {
    enum class event : std::uint8_t { confirmed, message, interrupted };

    std::weak_ptr<channel_listener> whom;
    event what = event::message;
    std::string payload;
    error why;
  };
  using news = std::vector<notice>;

  subscriber(net::network net, server_options options, subscriber_limits limits);

  void unsubscribe(const channel_id& channel, std::uint64_t id) noexcept;
  void ask(question what, const channel_id& channel, time_point now);
  void drop_link(mutex_lock& lock, const error& why);
  bool take(const reply& answer, news& told);
  bool take_push(std::string_view what, const channel_id& channel, const reply& answer, news& told);
  bool take_error(const reply& answer, news& told);
  bool answered(question what, const channel_id& channel);
  void settle(channel_map::iterator channel, news& told);
  void lose(entry& channel, const error& why, news& told);
  void look_after_link(time_point when);
  void keep_alive();
  void tell_if_confirmed(const channel_id& channel, std::uint64_t id);
  static void tell(const news& told);
  std::shared_ptr<link> make_link() {
    return std::make_shared<link>(net_, options_, weak_from_this());
  }
  static void start_link(link& made) { made.start(); }
  [[nodiscard]] bool needed() const noexcept { return !channels_.empty(); }
  [[nodiscard]] std::string where() const { return "redis " + options_->where.text(); }

  const std::shared_ptr<const server_options> options_;
  const subscriber_limits limits_;

  // All below: guarded by mutex_.
  channel_map channels_;
  std::deque<asked> asked_;
  std::uint64_t next_id_ = 1;
  spi::runtime::timer_id keepalive_timer_ = 0;
};

}  // namespace holdfast::redis
