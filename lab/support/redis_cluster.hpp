// A cluster of masters and replicas, for tests and torture.
#pragma once

#include "support/redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. Runs from its construction, which waits until every node serves, to its
// destruction. At first the first three nodes are masters with a third of the slots each, the others
// their replicas.
class redis_cluster {
 public:
  static constexpr std::size_t master_count = 3;
  static constexpr std::size_t node_count = 6;

  redis_cluster() : redis_cluster(redis_options{}) {}
  // `options`: of each node; if they name an administrator, it must also be allowed to move keys.
  explicit redis_cluster(redis_options options);

  [[nodiscard]] std::string url() const;
  [[nodiscard]] redis_server& node(std::size_t which) const { return *nodes_[which]; }
  // Empties the first masters.
  void flush() const;
  // The node that says it serves the slot now; waits until one does.
  [[nodiscard]] std::size_t owner(int slot) const;
  // The node's name in the cluster.
  [[nodiscard]] const std::string& id(std::size_t which) const { return ids_[which]; }
  // Marks the slot as being moved from its owner; what redis-cli does first.
  void begin_move(int slot, std::size_t to) const;
  // Moves its keys and gives it away; what redis-cli does then.
  void end_move(int slot, std::size_t to) const;
  // A replica that follows the node now.
  [[nodiscard]] std::size_t replica_of(std::size_t which) const;
  // A planned failover to this replica; returns when it says that it is the master.
  void fail_over_to(std::size_t replica);
  // How long a node may be silent. Initially so long that a host that is paused for seconds does
  // not cause a failover that no test asked for.
  static constexpr std::chrono::minutes not_within_a_test{5};
  void replace_after(std::chrono::milliseconds silence);
  // Every node reports that all is well, and knows all the others.
  [[nodiscard]] bool settled() const;

 private:
  void move_keys(int slot, std::size_t from, std::size_t to) const;

  const redis_options options_;
  std::chrono::milliseconds silence_{};  // after which a node is replaced
  std::vector<std::unique_ptr<redis_server>> nodes_;
  std::vector<std::string> ids_;
};

}  // namespace holdfast::test
