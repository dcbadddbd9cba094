// What the store knows of one claim of this process: where its node is, and what it watches.
#pragma once

#include "stores/queued/queued_claim.hpp"
#include "stores/zookeeper/names.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/clock.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

// Guarded by the store's mutex.
struct entry : stores::queued_claim {
  std::shared_ptr<session> life;
  std::string path;  // of the resource
  claim_kind kind{};
  node_naming naming{};

  // In ZooKeeper.
  std::string parent;               // of its node: the path, or the semaphore's folder of locks
  std::string node;                 // the name; empty: none
  std::vector<std::string> leases;  // of a semaphore's holder: whole paths
  bool expects_end = false;         // we remove or replace our own node

  // Watches.
  std::shared_ptr<watcher> watch;  // on the blocker
  std::string watched;
  opcode watched_by{};
  std::uint64_t look = 0;  // which look at the line set the watch on the blocker
  bool shortcut = false;   // the end of the blocker is our grant: no other look is needed
  bool armed = false;      // waiting, and the blocker is watched
  bool own_event = false;  // something happened to our node
  bool folder_watched = false;

  time_point looked_at{};

  [[nodiscard]] bool nothing_made() const noexcept {
    return node.empty() && leases.empty() && !uncertain;
  }
  [[nodiscard]] fence_token fence() const noexcept { return stores::fence_of(created); }
  [[nodiscard]] duration life_time() const { return life->timeout(); }
  [[nodiscard]] std::string node_path() const { return parent + "/" + node; }
  // What shows that we hold: the node, or the first lease.
  [[nodiscard]] std::string token_path() const {
    return leases.empty() ? node_path() : leases.front();
  }
};

using entry_ptr = std::shared_ptr<entry>;

}  // namespace holdfast::zookeeper
