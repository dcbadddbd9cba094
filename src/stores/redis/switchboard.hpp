// How the server reaches claims: one channel per partition in which this process has claims, and
// a wake-up for each claim.
#pragma once

#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/topology.hpp"
#include "stores/wakeup_registry.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::redis {

// Thread-safe. Wake-ups are called under no lock.
//
// A partition's states:
//   unused      not requested
//   asked       subscribed, not yet confirmed, or interrupted: grants may be missed
//   open        confirmed: claims that queue are reachable
class switchboard : public std::enable_shared_from_this<switchboard> {
 public:
  // How to treat a pushed grant: as the grant, or only as a reason to ask,
  // where replicas must confirm.
  enum class pushes : std::uint8_t { as_grants, as_hints };

  // `process`: the name of this client in its channels.
  switchboard(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
              std::string process, pushes how = pushes::as_grants);
  ~switchboard();
  switchboard(const switchboard&) = delete;
  switchboard& operator=(const switchboard&) = delete;

  // For an attempt: listens on the partition from now on, and notifies this claim. Returns
  // whether the partition is open.
  bool connect(partition which, const spi::claim_id& id, std::shared_ptr<spi::wakeup> wakeup);
  void disconnect(partition which, const spi::claim_id& id) noexcept { wakeups_[which].remove(id); }

  // For a claim that leaves with an attempt unanswered: that was its only attempt, and is not known
  // to be lost. False without a wake-up.
  [[nodiscard]] bool only_attempt(partition which, const spi::claim_id& id) const {
    return wakeups_[which].only_attempt(id);
  }
  // The server no longer has the claim, so nobody will leave it. If more than one attempt was sent
  // the wake-up stays: another may be under way.
  void claim_over(partition which, const spi::claim_id& id) noexcept {
    if (only_attempt(which, id)) disconnect(which, id);
  }
  // An attempt was not answered, or a copy of it was not, and may be executed at any time.
  void attempt_lost(partition which, const spi::claim_id& id) noexcept {
    wakeups_[which].attempt_lost(id);
  }
  // Whether that was said of the claim.
  [[nodiscard]] bool may_come_late(partition which, const spi::claim_id& id) const {
    return wakeups_[which].may_come_late(id);
  }

  [[nodiscard]] bool connected(partition which, const spi::claim_id& id) const {
    return wakeups_[which].find(id) != nullptr;
  }
  // Once the partition is open: ok. denied, or unavailable at the deadline.
  void when_open(partition which, time_point deadline, spi::completion<void> done);

  // No claim is notified afterwards; calls that wait for a partition are answered.
  void close() noexcept;

 private:
  class line;
  struct caller {
    std::uint64_t number = 0;
    spi::runtime::timer_id timer = 0;
    spi::completion<void> done;
  };
  struct state {
    std::shared_ptr<line> listener;
    std::unique_ptr<spi::subscription> subscription;
    bool open = false;
    bool opened_before = false;
    std::optional<error> refusal;
    std::vector<caller> waiting;
  };

  void confirmed(partition which);
  void interrupted(partition which, const error& why);
  void message(partition which, std::string_view payload);
  void expire(partition which, std::uint64_t number);
  static void finish(std::vector<caller> those, spi::runtime& runtime, const result<void>& how);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const std::string process_;
  const pushes pushes_;
  std::array<stores::wakeup_registry<>, partition_count> wakeups_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::array<state, partition_count> partitions_;
  std::uint64_t next_number_ = 1;
  bool closed_ = false;
};

}  // namespace holdfast::redis
