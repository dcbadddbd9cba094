// The nodes of a cluster, each with the partitions whose slots it serves.
#pragma once

#include "net/target.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/topology/moving_topology.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Which node has which slot, as reported by the nodes of a cluster; parsed without I/O.
inline constexpr std::uint16_t slot_count = 16'384;

// CRC16 (XMODEM) of a hash tag.
std::uint16_t slot_of(std::string_view tag) noexcept;
// The slot of a key: that of its hash tag, if it has one.
std::uint16_t slot_of_key(std::string_view key) noexcept;
// The slot of all keys and channels of the partition, given how many partitions there are.
std::uint16_t slot_of_partition(partition which, std::size_t partitions = partition_count);

struct cluster_map {
  std::int64_t epoch = 0;  // grows with each failover and each slot that was moved
  std::vector<std::optional<net::target>> masters;  // of partitions; none: no node serves the slot
};

// Two questions in one burst: CLUSTER INFO, CLUSTER SLOTS.
command cluster_question();
// The answer to both. `asked`: the host that answered, which is used where none is named. None: no
// map (an error reply, or an unexpected one).
std::optional<cluster_map> read_cluster(const reply& answer, const std::string& asked,
                                        std::size_t partitions = partition_count);

// From "MOVED 3999 127.0.0.1:6381" or "ASK ...".
std::optional<net::target> redirection(std::string_view text, const std::string& asked);

// Thread-safe. A few nodes at a time are asked for the map of slots: when first needed, when
// one answers MOVED, when a connection or a sharded channel ends, and repeatedly while a
// partition's node is not reached.
//
// What must hold:
//  1. MOVED takes effect at once, for its partition; the map follows.
//  2. A map of an older epoch is used only if no node that was asked in that round has a newer one.
//  3. While a slot is being moved its scripts are refused (TRYAGAIN) by both nodes, since some of a
//     lock's keys may be here and some there; they wait until it has moved. Single commands follow
//     ASK.
class cluster_topology final : public moving_topology {
 public:
  static constexpr std::size_t asked_at_once = 3;
  static constexpr std::size_t node_limit = 1'000;  // more are not remembered
  static constexpr duration round_limit = std::chrono::seconds(1);
  // Between rounds; twice as long each time while a node is not reached.
  static constexpr duration shortest_rest = std::chrono::milliseconds(50);
  static constexpr duration longest_rest = std::chrono::seconds(2);

  struct settings {
    std::vector<net::target> seeds;
    server_options server;                     // of every node, except for its address
    std::size_t partitions = partition_count;  // or slot_count
  };

  cluster_topology(net::network net, settings how);
  ~cluster_topology() override;
  cluster_topology(const cluster_topology&) = delete;
  cluster_topology& operator=(const cluster_topology&) = delete;

  using moving_topology::where;
  [[nodiscard]] std::string where() const override {
    return "redis cluster " + seeds_.front().text();
  }

 protected:
  verdict judge(const routed_command& which, const reply& refusal) override;
  void look_around() override;
  void node_opened(const std::string& where) override;
  void node_ended(const std::string& where) override;
  void end() noexcept override;

 private:
  struct known {
    std::shared_ptr<node> it;
    bool down = false;  // was not reached when last needed
  };
  struct round {
    std::uint64_t number = 0;
    std::size_t missing = 0;  // answers that are missing
    bool taken = false;       // a map of it is in use
    std::optional<cluster_map> older;
    std::optional<error> failure;
  };

  [[nodiscard]] std::shared_ptr<node> node_at(const net::target& where);
  [[nodiscard]] std::vector<std::shared_ptr<node>> whom_to_ask();
  void heard(std::uint64_t round, const std::shared_ptr<node>& from, const result<reply>& answer);
  void adopt(const cluster_map& map);
  void round_over();
  void rest(duration at_most);
  [[nodiscard]] bool all_reached();

  const std::vector<net::target> seeds_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::map<std::string, known> nodes_;
  std::string preferred_;  // was named by MOVED: best informed
  round round_;
  bool again_ = false;  // something happened during the round
  std::int64_t epoch_ = -1;
  duration rest_ = shortest_rest;
  time_point not_before_{};
  spi::runtime::timer_id timer_ = 0;
  bool ended_ = false;
};

}  // namespace holdfast::redis
