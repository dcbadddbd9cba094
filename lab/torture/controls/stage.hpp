// The stage on which a broken lock is shown at work: its clients' steps are recorded as a
// real torture client records them, and the same judge examines them.
#pragma once

#include "torture/run_record.hpp"

#include <holdfast/clock.hpp>

#include <string>

namespace holdfast::torture {

// Not thread-safe. Times are real: what the lock does happens between two
// calls.
class stage {
 public:
  // One resource. The bounds are those of a working lock: see run_record.
  explicit stage(std::string engine, sim::facts::resource rule = {});

  // A client asks; returns the number that names it from then on.
  std::int32_t asks(std::int32_t client, bool fair = false, spi::mode mode = spi::mode::exclusive);
  // It is told that it has the lock, and trusts it. Fence 0: locks without fences get one
  // each, so that only the intended defect is found.
  void granted(std::int32_t hold, std::uint64_t fence = 0);
  // It is told that it is in the queue.
  void queued(std::int32_t hold);
  // It waited too long.
  void times_out(std::int32_t hold);
  // By its own rules its hold is no longer valid.
  void gives_up(std::int32_t hold);
  void releases(std::int32_t hold);
  void writes(std::int32_t hold);
  void killed(std::int32_t client);
  void paused(std::int32_t client);
  void resumed(std::int32_t client);

  [[nodiscard]] sim::moment now() const { return clock::now() - start_; }
  [[nodiscard]] const run_record& told() const noexcept { return run_record_; }

 private:
  sim::record& of(std::int32_t hold);
  sim::record& add(sim::what kind, sim::record line);

  run_record run_record_;
  time_point start_ = clock::now();
  std::vector<sim::record> asked_;  // by hold - 1
  std::uint64_t fence_ = 0;
  std::uint64_t greatest_ = 0;  // that the resource has seen
};

}  // namespace holdfast::torture
