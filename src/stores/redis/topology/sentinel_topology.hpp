// The master that sentinels name, and the next one after a failover.
#pragma once

#include "net/target.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/topology/moving_topology.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

// What a sentinel reports about a master, parsed without I/O.
struct sentinel_answer {
  enum class kind : std::uint8_t { found, no_such_name, refused };

  kind what = kind::refused;
  net::target master;
  std::int64_t epoch = 0;  // of the configuration: grows with each failover, the same on all
  std::string refusal;
};

// Two questions in one burst: the address, which is also correct during a failover, and the epoch.
command sentinel_question(std::string_view name);
// The answer to both.
sentinel_answer read_sentinel(const reply& answer);
// "+switch-master": is it about this master?
bool switches(std::string_view payload, std::string_view name) noexcept;

// Thread-safe. All sentinels are asked at once, in rounds: when first needed, when one of them
// announces a new master, when the master's connection ends or it says that it is a replica, and
// repeatedly while no master is reached.
//
// What must hold:
//  1. A master of a newer configuration (epoch) is taken as soon as one sentinel names it.
//     Without a known one, a majority or all that can be reached must have answered.
//  2. An older configuration is used only if every sentinel reports one: they were set up again. So
//     a former master is never written to while the present one is known.
//  3. The server itself must say (ROLE) that it is a master, at each connection.
class sentinel_topology final : public moving_topology {
 public:
  static constexpr duration round_limit = std::chrono::seconds(1);
  // While the master is not reached; twice as long each time.
  static constexpr duration shortest_rest = std::chrono::milliseconds(100);
  static constexpr duration longest_rest = std::chrono::seconds(2);

  struct settings {
    std::vector<server_options> sentinels;
    std::string master;     // its name
    server_options server;  // of the master, except for its address
  };

  sentinel_topology(const net::network& net, settings how);
  ~sentinel_topology() override;
  sentinel_topology(const sentinel_topology&) = delete;
  sentinel_topology& operator=(const sentinel_topology&) = delete;

  using moving_topology::where;
  [[nodiscard]] std::string where() const override {
    return "redis master " + name_ + " by sentinel " + sentinels_.front()->options().where.text();
  }

 protected:
  verdict judge(const routed_command& which, const reply& refusal) override;
  void look_around() override;
  void node_opened(const std::string& where) override;
  void node_ended(const std::string& where) override;
  void end() noexcept override;

 private:
  class announcement_listener;
  struct round {
    std::uint64_t number = 0;
    std::size_t missing = 0;  // answers that are missing
    std::vector<sentinel_answer> answers;
    std::optional<error> failure;  // of a sentinel that was not reached
  };

  void heard(std::uint64_t round, const node& from, const result<reply>& answer);
  [[nodiscard]] std::optional<sentinel_answer> choose() const;
  void adopt(const sentinel_answer& found);
  void round_over();
  [[nodiscard]] error no_master() const;

  const std::string name_;
  std::vector<std::shared_ptr<node>> sentinels_;  // not changed after construction

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::vector<std::shared_ptr<announcement_listener>> listeners_;
  std::vector<std::unique_ptr<spi::subscription>> subscriptions_;
  round round_;
  bool again_ = false;  // something happened during the round
  std::int64_t epoch_ = -1;
  std::shared_ptr<node> master_;
  bool reached_ = false;  // the master
  duration rest_ = shortest_rest;
  spi::runtime::timer_id timer_ = 0;
  bool ended_ = false;
};

}  // namespace holdfast::redis
