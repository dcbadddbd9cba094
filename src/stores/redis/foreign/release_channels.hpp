// Where holders of a foreign format announce that they have released a lock: one subscription for
// every channel to which somebody in this process listens.
#pragma once

#include "stores/redis/topology.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::redis {

// Thread-safe. Wake-ups are called under no lock.
class release_channels final : public std::enable_shared_from_this<release_channels> {
 public:
  release_channels(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers)
      : runtime_(std::move(runtime)), topology_(std::move(servers)) {}

  // Called with an attempt: registers its wake-up.
  void enter(const spi::claim& claim, const std::string& channel,
             std::shared_ptr<spi::wakeup> wakeup);
  // Listens for it from now on. no_gap: it listened before its last attempt already. recheck: it
  // listens as of now. An error, also at the deadline: it does not listen.
  void listen(const spi::claim& claim, partition where, const std::string& channel,
              time_point deadline, spi::completion<spi::armed> done);
  // It holds, or has left.
  void forget(const spi::claim& claim, const std::string& channel) noexcept;
  void close() noexcept;

 private:
  class listener;
  struct waiter {
    std::shared_ptr<spi::wakeup> wakeup;
    bool listens = false;  // the channel was confirmed, and still is
    spi::runtime::timer_id timer = 0;
    spi::completion<spi::armed> done{};  // waits for the confirmation
  };
  struct heard {
    std::shared_ptr<channel_listener> listener;
    std::unique_ptr<spi::subscription> subscription;
    bool confirmed = false;
    std::map<spi::claim_id, waiter> waiters;
  };

  void confirmed(const std::string& which);
  void published(const std::string& which);
  void interrupted(const std::string& which, const error& why);
  void late(const std::string& which, const spi::claim_id& id);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  std::mutex mutex_;
  bool closed_ = false;                    // guarded by mutex_
  std::map<std::string, heard> channels_;  // guarded by mutex_
};

}  // namespace holdfast::redis
