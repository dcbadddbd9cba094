// The network between one client and the server: a connection for requests and replies, which keeps
// their order, and a subscription for pushes, which may overtake both. Troubles disturb it.
//
// A request of a connection that is closed may still be executed, at once or much later: bytes that
// a server has received count although the sender is gone.
#pragma once

#include "sim/event_loop.hpp"
#include "sim/message.hpp"
#include "sim/random.hpp"

#include <memory>
#include <vector>

namespace holdfast::sim {

class history;
class server;

// The client's end.
class link_user {
 public:
  virtual ~link_user() = default;
  virtual void received(reply answer) = 0;
  virtual void pushed(const push_value& news) = 0;
  virtual void disconnected() = 0;
  virtual void connected() = 0;
  virtual void subscribed() = 0;  // again: pushes may have been missed
};

struct link_conditions {
  duration shortest{};  // one way
  duration longest{};
  std::uint32_t request_loss = 0;  // per thousand
  std::uint32_t reply_loss = 0;
  std::uint32_t push_loss = 0;
  bool pushes_in_order = true;
  duration shortest_reconnect = std::chrono::microseconds(200);
  duration longest_reconnect = std::chrono::milliseconds(100);
};

class link {
 public:
  link(event_loop& loop, history& log, node& client, sim::server& server, std::int32_t process,
       random_source random, const link_conditions& normal);
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void attach(link_user* user) noexcept { user_ = user; }

  // False: there is no connection now; nothing was sent.
  bool send(request_ptr message);

  // From the server.
  void push(push_value news);
  [[nodiscard]] bool server_sees_subscription() const noexcept { return server_sees_; }

  // Troubles.
  link_conditions& conditions() noexcept { return conditions_; }
  void heal() noexcept { conditions_ = normal_; }
  // Nothing moves on the connection until then; whatever was sent arrives afterwards.
  void stall(moment until) noexcept;
  // A client that waits for a connection that is stuck gets a new one; what was sent stays late.
  void unstick();
  // Both ends learn of it. Requests in flight are lost, or executed, `late` or at once.
  void cut(bool executed, moment late);
  // The client gave up on it; what it sent may still be executed.
  void abandon() { cut(true, moment{}); }
  // The server learns of it after `unnoticed`.
  void cut_subscription(duration unnoticed);
  void server_died();
  void client_died(duration unnoticed);
  // No more messages travel in either direction.
  void end() noexcept { ended_ = true; }

 private:
  struct connection {
    bool open = true;
    bool executed = false;     // what was in flight when it was closed
    moment late{};             // and not before this
    std::uint32_t number = 0;  // of this link's connections
    moment stuck_until{};
    moment last_up{};
    moment last_down{};
  };
  using connection_ptr = std::shared_ptr<connection>;

  // What travels on one channel keeps its order.
  enum class direction : std::uint8_t { up, down, pushes, news };
  [[nodiscard]] std::uint32_t channel(direction which, std::uint32_t number = 0) const noexcept;
  [[nodiscard]] duration delay();
  void arrive(const connection_ptr& on, request_ptr message);
  void answer(const connection_ptr& on, reply answer);
  void reconnect();
  void subscribe();
  void confirm_subscription(std::uint32_t epoch);
  void set_reachable(bool seen);

  event_loop& loop_;
  history& log_;
  node& client_;
  sim::server& server_;
  const std::int32_t process_;
  random_source random_;
  const link_conditions normal_;
  link_conditions conditions_;
  link_user* user_ = nullptr;
  connection_ptr connection_ = std::make_shared<connection>();
  std::uint32_t connections_ = 0;
  bool ended_ = false;
  bool client_dead_ = false;

  bool subscribed_ = true;  // as the client sees it
  bool server_sees_ = true;
  std::uint32_t epoch_ = 0;  // of the subscription; pushes of an earlier one are lost
  moment last_push_{};
};

}  // namespace holdfast::sim
