// What Sentinel and Cluster have in common: partitions that have a home among several
// nodes, which may change. Commands wait for a home that is not known and follow one that
// changed; listeners follow too.
#pragma once

#include "net/connector.hpp"
#include "net/patience.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::redis {

// One command on its way to the node that has its partition, wherever that is by then.
struct routed_command {
  command what;
  const script* runs = nullptr;  // or null: a plain command
  partition where = 0;
  std::uint64_t number = 0;  // in the order of the calls
  net::patience until{};
  spi::completion<reply> done;
  std::uint32_t tries = 0;
  bool asking = false;  // sent this one time to another node, after ASKING
  std::string from;     // the host that was asked last: MOVED may leave it out
  std::string refusal;  // its last error reply
};

// A listener of a partition's channel that follows the partition from node to node.

// Thread-safe. The listener is called under no lock, one call at a time, in the order of the events.
//
// What must hold:
//  1. What a former node says is not passed on: a grant by a former master is void.
//  2. Between two nodes the listener gets interrupted(), then confirmed() from the new one.
//  3. A server without sharded channels (before version 7) is asked for a classic one instead; the
//     scripts decide by the same version.
class migrating_subscription final : public std::enable_shared_from_this<migrating_subscription> {
 public:
  // Events that wait for the listener; beyond this, messages are dropped: waiters ask again.
  static constexpr std::size_t event_limit = 100'000;

  // `troubled`: called when the node does not, or no longer, serve the channel.
  migrating_subscription(channel_id channel, std::weak_ptr<channel_listener> listener,
                         std::function<void()> troubled);
  ~migrating_subscription();
  migrating_subscription(const migrating_subscription&) = delete;
  migrating_subscription& operator=(const migrating_subscription&) = delete;

  // Listens there from now on. `version` grows with every move; an older one is ignored.
  void go(const std::shared_ptr<node>& to, std::uint64_t version);
  // A call that has begun is completed.
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

// Thread-safe.
//
// What must hold:
//  1. Commands of a partition are executed in the order of their calls. A command that must
//     be retried is put back in its place; if a later one was executed meanwhile, it is
//     answered with unavailable.
//  2. A command is sent again only after an answer that says that it was not executed.
//  3. No lock is held while a node, a listener or a completion is called.
class moving_topology : public topology, public std::enable_shared_from_this<moving_topology> {
 public:
  static constexpr std::size_t stalled_limit = 200'000;  // beyond this: overloaded
  static constexpr std::uint32_t hops_at_once = 5;       // then with a pause in between
  static constexpr duration shortest_pause = std::chrono::milliseconds(10);
  static constexpr duration longest_pause = std::chrono::milliseconds(200);

  using topology::run;
  void run(partition which, pending_ptr call) override;
  void send(partition which, const command& what, const net::patience& until,
            spi::completion<reply> done) override;
  result<std::unique_ptr<spi::subscription>> listen(
      partition which, const std::string& channel,
      std::weak_ptr<channel_listener> listener) override;
  void ready(const net::patience& until, spi::completion<void> done) override;
  [[nodiscard]] channel_id::flavour flavour() const noexcept override { return flavour_; }
  [[nodiscard]] std::vector<std::shared_ptr<node>> nodes() override;
  using topology::where;
  [[nodiscard]] std::string where(partition which) const override;
  void close() noexcept override;

 protected:
  using homes = std::vector<std::shared_ptr<node>>;  // one for each partition
  struct verdict {
    enum class what : std::uint8_t {
      answer,     // it is the caller's answer
      again,      // at the partition's home, at once
      later,      // at the partition's home, after a pause
      elsewhere,  // this one time at another node
    };

    what next = what::answer;
    std::shared_ptr<node> at;  // elsewhere
  };

  // `common`: of every node, except for its address.
  moving_topology(net::network net, server_options common, channel_id::flavour how,
                  std::size_t partitions = partition_count);

  // Called under no lock. What an error reply means here; for MOVED, the home is updated first.
  virtual verdict judge(const routed_command& which, const reply& refusal) = 0;
  // Finds out where partitions live: a home is missing, or seems to be wrong. Does not block.
  virtual void look_around() = 0;
  // Of a node that make_node() made.
  virtual void node_opened(const std::string& where) = 0;
  virtual void node_ended(const std::string& where) = 0;
  // Ends everything that belongs to the derived class.
  virtual void end() noexcept = 0;

  [[nodiscard]] std::shared_ptr<node> make_node(const net::target& where);
  // Null: unchanged.
  void settle(const homes& where);
  void settle(partition which, const std::shared_ptr<node>& where);
  // Commands that wait for a home are answered with it; if it is unavailable, only those that
  // accept that as an answer (patience).
  void refuse_stalled(const error& why);
  // Why there is no home, for commands that wait for one.
  void set_trouble(std::string text);
  // Somebody waits for a home or listens: it is worthwhile to look around.
  [[nodiscard]] bool in_demand() const;
  [[nodiscard]] homes current() const;
  [[nodiscard]] std::size_t partitions() const noexcept { return partitions_.size(); }
  [[nodiscard]] const net::network& net() const noexcept { return net_; }
  [[nodiscard]] bool forked() const noexcept { return guard_.forked(); }

 private:
  class handle;
  struct partition_state {
    std::shared_ptr<node> home;
    std::uint64_t version = 0;            // of the home
    std::uint64_t executed = 0;           // the highest number that was executed
    std::vector<routed_command> stalled;  // by number
    bool draining = false;                // somebody sends them now
    time_point again_at{};                // not before
    duration pause{};                     // the last one
  };
  struct listening {
    partition where = 0;
    std::shared_ptr<migrating_subscription> who;
  };
  using mutex_lock = std::unique_lock<std::mutex>;

  void dispatch(routed_command which);
  void transmit(const std::shared_ptr<node>& to, routed_command which);
  void answered(routed_command which, result<reply> answer);
  void executed(const routed_command& which);
  void again(routed_command which, const verdict& how);
  void stall(partition_state& mine, routed_command which);
  void arm(time_point at);
  void tick();
  void drain(partition which);
  void forget(std::uint64_t listener) noexcept;

  const runtime::fork_guard guard_;
  const net::network net_;
  const server_options common_;
  const channel_id::flavour flavour_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::vector<partition_state> partitions_;  // as many from the start on
  std::map<std::uint64_t, listening> listeners_;
  std::uint64_t numbers_ = 0;
  std::size_t stalled_ = 0;
  time_point armed_at_ = time_point::max();
  spi::runtime::timer_id timer_ = 0;
  std::string trouble_;
  bool closed_ = false;
};

}  // namespace holdfast::redis
