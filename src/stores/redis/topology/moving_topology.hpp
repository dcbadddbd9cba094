// What Sentinel and Cluster have in common: lanes that have a home among several nodes, and change
// it. Commands wait for a home that is not known and follow one that changed; listeners follow too.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/topology/errand.hpp"
#include "stores/redis/topology/roamer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::redis {

// Thread-safe.
//
// What must hold:
//  1. Commands of a lane are executed in the order of their calls. Who has to try again is put back
//     in its place; if one behind it was executed meanwhile, it is answered with unavailable.
//  2. A command is sent again only after an answer that says that it was not executed.
//  3. No lock is held while a node, a listener or a completion is called.
class moving_topology : public topology, public std::enable_shared_from_this<moving_topology> {
 public:
  static constexpr std::size_t stalled_limit = 200'000;  // then overloaded
  static constexpr std::uint32_t hops_at_once = 5;       // then with a pause in between
  static constexpr duration shortest_pause = std::chrono::milliseconds(10);
  static constexpr duration longest_pause = std::chrono::milliseconds(200);

  void run(lane which, const script& what, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, const net::patience& until,
           spi::completion<reply> done) override;
  void send(lane which, const command& what, const net::patience& until,
            spi::completion<reply> done) override;
  result<std::unique_ptr<spi::subscription>> listen(
      lane which, const std::string& channel, std::weak_ptr<channel_listener> listener) override;
  void ready(const net::patience& until, spi::completion<void> done) override;
  [[nodiscard]] channel_id::flavour flavour() const noexcept override { return flavour_; }
  [[nodiscard]] std::vector<std::shared_ptr<node>> nodes() override;
  using topology::where;
  [[nodiscard]] std::string where(lane which) const override;
  void close() noexcept override;

 protected:
  using homes = std::array<std::shared_ptr<node>, lane_count>;
  struct verdict {
    enum class what : std::uint8_t {
      answer,     // it is the caller's
      again,      // at the lane's home, at once
      later,      // at the lane's home, after a pause
      elsewhere,  // this one time at another node
    };

    what next = what::answer;
    std::shared_ptr<node> at;  // elsewhere
  };

  // `common`: of every node, but for its place.
  moving_topology(net::network net, server_options common, channel_id::flavour how);

  // Called under no lock. What an error reply means here; with MOVED the home is settled first.
  virtual verdict judge(const errand& which, const reply& refusal) = 0;
  // Find out where lanes live: a home is missing, or seems to be wrong. Does not block.
  virtual void look_around() = 0;
  // Of a node that make_node() made.
  virtual void node_opened(const std::string& where) = 0;
  virtual void node_ended(const std::string& where) = 0;
  // Ends everything that is the derived class's own.
  virtual void end() noexcept = 0;

  [[nodiscard]] std::shared_ptr<node> make_node(const net::target& where);
  // Null: as it was.
  void settle(const homes& where);
  void settle(lane which, const std::shared_ptr<node>& where);
  // Whoever waits for a home is answered with it; where it is unavailable: those who take that for an
  // answer (patience).
  void refuse_stalled(const error& why);
  // Why there is no home, for who waits in vain.
  void set_trouble(std::string text);
  // Somebody waits for a home or listens: it is worth while to look around.
  [[nodiscard]] bool in_demand() const;
  [[nodiscard]] homes current() const;
  [[nodiscard]] const net::network& net() const noexcept { return net_; }
  [[nodiscard]] bool forked() const noexcept { return guard_.forked(); }

 private:
  class ticket;
  struct lane_state {
    std::shared_ptr<node> home;
    std::uint64_t version = 0;   // of the home
    std::uint64_t executed = 0;  // the highest number that was
    std::deque<errand> stalled;  // by number
    bool draining = false;       // somebody sends them now
    time_point again_at{};       // not before
    duration pause{};            // the last one
  };
  struct listening {
    lane where = 0;
    std::shared_ptr<roamer> who;
  };
  using mutex_lock = std::unique_lock<std::mutex>;

  void dispatch(errand which);
  void transmit(const std::shared_ptr<node>& to, errand which);
  void answered(errand which, result<reply> answer);
  void executed(const errand& which);
  void again(errand which, const verdict& how);
  void stall(lane_state& mine, errand which);
  void arm(time_point at);
  void tick();
  void drain(lane which);
  void forget(std::uint64_t listener) noexcept;

  const runtime::fork_guard guard_;
  const net::network net_;
  const server_options common_;
  const channel_id::flavour flavour_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::array<lane_state, lane_count> lanes_;
  std::map<std::uint64_t, listening> listeners_;
  std::uint64_t numbers_ = 0;
  std::size_t stalled_ = 0;
  time_point armed_at_ = time_point::max();
  spi::runtime::timer_id timer_ = 0;
  std::string trouble_;
  bool closed_ = false;
};

}  // namespace holdfast::redis
