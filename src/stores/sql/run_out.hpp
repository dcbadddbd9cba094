// Holds that must run out: where a name stays blocked after an abnormal end, the core leaves nothing when a
// belief ends, and the store sees the end by its clock. Locks of a connection have no such clock, so it
// is kept here.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace holdfast::sql {

// Thread-safe. Calls others under no lock.
class run_out : public std::enable_shared_from_this<run_out> {
 public:
  // `over`: the time of this hold is up. Called on the runtime's threads.
  run_out(std::shared_ptr<spi::runtime> runtime, std::function<void(const spi::claim_ptr&)> over)
      : runtime_(std::move(runtime)), over_(std::move(over)) {}

  // It was proven by a request sent at that time, and is believed no longer than its ttl after it. Claims
  // without a delay are none of our business.
  void prove(const spi::claim_ptr& claim, time_point sent);
  void forget(const spi::claim_id& claim);
  void close();

 private:
  struct one {
    spi::claim_ptr claim;
    time_point until;
  };

  void watch(const spi::claim_id& claim, time_point until);
  void check(const spi::claim_id& claim);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::function<void(const spi::claim_ptr&)> over_;
  std::mutex mutex_;
  std::map<spi::claim_id, one> all_;  // guarded by mutex_
};

}  // namespace holdfast::sql
