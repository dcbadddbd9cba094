// One process of a measurement: its threads, each acquiring and releasing locks until the time is
// over.
#pragma once

#include "cli/arguments.hpp"
#include "cli/connection.hpp"
#include "tools/bench/cost.hpp"
#include "tools/bench/histogram.hpp"
#include "tools/worker_processes.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::cli {

// How much of the start is not counted: connections, caches and scripts are new.
duration warm_up(duration length) noexcept;
std::size_t locks_of(const bench_arguments& how) noexcept;

struct bench_plan {
  bench_arguments how;
  address to;
  credentials with;
  std::string name;  // the prefix of all locks of this run
};

struct worker_result {
  histogram acquire;   // from the call to the grant
  histogram release;   // from the call to the answer
  histogram hand_off;  // from the releasing call to the grant of a waiter
  duration processor{};
  std::uint64_t memory = 0;  // peak, resident, bytes
  std::optional<cli::traffic> traffic;
};

// What the processes of a measurement share.
struct bench_board {
  explicit bench_board(const bench_arguments& how)
      : results(how.processes), grants(how.all_threads()), given_back(locks_of(how)) {}

  using moment = std::atomic<time_point::rep>;
  static_assert(moment::is_always_lock_free);

  shared_array<moment> start{1};  // written before they are started
  shared_array<worker_result> results;
  shared_array<std::uint64_t> grants;  // acquired and released within the time, by thread
  // When each lock was last released: the holder of an exclusive one writes it just before, so the
  // next holder knows how long the hand-over took. All processes of a machine share one clock.
  shared_array<moment> given_back;
};

// The part of one process, from its connection to its result.
outcome<void> measure(const bench_plan& plan, const bench_board& board, worker_processes& all,
                      std::uint32_t process);

}  // namespace holdfast::cli
