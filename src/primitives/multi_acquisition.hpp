// The acquisition of several locks: rounds that wait for one lock and try the others, until one round
// gets all of them.
//
// Thread-safe. States: taking (one acquisition is in flight) -> (answered | pausing -> taking). The
// locks of a round are released before the next begins, and the next waits for the lock that was in
// the way: nobody holds one and waits for another, so no cycle can form.
#pragma once

#include "core/acquisition.hpp"
#include "core/hold.hpp"

#include <holdfast/multi_lock.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast {

class multi_acquisition : public std::enable_shared_from_this<multi_acquisition> {
 public:
  using shared_parts = std::shared_ptr<const std::vector<lock_part>>;

  // `thread`: of a blocking caller, else 0.
  multi_acquisition(shared_parts parts, const acquire_options& options, std::uint64_t thread);

  // The answer comes once, on any thread, perhaps before this returns.
  void start(spi::completion<multi_lease> done);
  // Answers cancelled if there is no answer yet.
  void cancel() noexcept;

 private:
  void begin_round();
  void take_next();
  void took(std::uint64_t serial, result<std::shared_ptr<core::hold>> answer);
  void took_all();
  // The lock at first_ + step_ was in the way.
  void end_round(const error& why);
  void pause(duration length, const error& why);
  void resume(const error& why);
  void answer(result<multi_lease> outcome);
  [[nodiscard]] std::size_t which(std::size_t step) const noexcept;

  const shared_parts parts_;
  const duration wait_;
  const std::uint64_t thread_;
  const std::shared_ptr<spi::runtime> runtime_;  // of the first; keeps the time
  time_point deadline_{};
  std::vector<std::size_t> order_;  // the order of taking them: by name, the same everywhere

  // Touched by one step after the other.
  std::size_t first_ = 0;  // the index in order_ that this round waits for
  std::size_t step_ = 0;   // how many this round has taken
  std::vector<lease> leases_;
  time_point tries_begun_{};
  unsigned failures_ = 0;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  spi::completion<multi_lease> done_;
  std::shared_ptr<core::acquisition> current_;
  std::uint64_t serial_ = 0;  // of the acquisition in flight; changes when it is answered
  bool late_ = false;         // the try in flight took too long and was cancelled
  bool pausing_ = false;
  bool cancelled_ = false;
  spi::runtime::timer_id timer_ = 0;
};

}  // namespace holdfast
