// What the store knows of one claim of this process: where its node is, and who waits to hear of
// it.
#pragma once

#include "stores/zookeeper/names.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

// Guarded by the store's mutex. One flow at a time works on it (`running`); whoever wants something
// leaves a note and sets `dirty`.
//
//   phase    means
//   placing  its node is not made, or it is not known where it stands
//   waiting  its node is in line, and the one before it is watched
//   held     it holds: its node is first, or its leases are made
//   over     forgotten by the store; flows that are still at it end
struct entry {
  enum class phase : std::uint8_t { placing, waiting, held, over };

  struct change {
    spi::mode to{};
    spi::completion<spi::granted> done;
  };

  spi::claim_ptr claim;
  std::shared_ptr<spi::wakeup> wakeup;
  std::shared_ptr<session> life;
  std::string path;  // of the resource
  claim_kind kind{};
  node_naming naming{};
  phase where = phase::placing;

  // In ZooKeeper.
  std::string parent;               // of its node: the path, or the semaphore's folder of locks
  std::string node;                 // the name; empty: none
  std::vector<std::string> leases;  // of a semaphore's holder: whole paths
  std::int64_t owner = 0;           // the session by which they live
  std::int64_t created = 0;         // czxid
  bool uncertain = false;           // a request that makes a node was not answered

  // Who waits.
  bool running = false;
  bool dirty = false;
  net::patience until{};  // of the latest verb
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<change> changes;
  bool expects_end = false;  // we remove or replace our own node
  bool ending = false;       // its time is over: to be removed, though nobody asks

  // Watches.
  std::shared_ptr<watcher> watch;  // on the blocker
  std::string watched;
  opcode watched_by{};
  std::uint64_t look = 0;  // which look at the line set the watch on the blocker
  bool shortcut = false;   // the end of the blocker is our grant: no other look is needed
  bool armed = false;      // waiting, and the blocker is watched
  bool own_watched = false;
  bool own_event = false;  // something happened to our node
  bool folder_watched = false;
  bool wanted = false;  // somebody waits behind us
  bool revoked = false;

  time_point looked_at{};
  time_point granted_at{};
  time_point end_at = time_point::max();  // when its node is removed if nothing is heard

  [[nodiscard]] bool permit() const noexcept { return claim->mode == spi::mode::permit; }
  [[nodiscard]] std::string node_path() const { return parent + "/" + node; }
  // What shows that we hold: the node, or the first lease.
  [[nodiscard]] std::string token_path() const {
    return leases.empty() ? node_path() : leases.front();
  }
};

using entry_ptr = std::shared_ptr<entry>;

inline constexpr duration recheck_after = std::chrono::seconds(1);

inline spi::blocked blocked_by(std::string who, bool queued) {
  spi::blocked answer;
  answer.queued = queued;
  answer.recheck_after = recheck_after;
  answer.blocker = std::move(who);
  return answer;
}

}  // namespace holdfast::zookeeper
