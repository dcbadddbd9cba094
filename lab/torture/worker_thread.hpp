// One thread of a client process: round after round of one workload or another.
#pragma once

#include "sim/random.hpp"
#include "torture/assignment.hpp"
#include "torture/board.hpp"
#include "torture/holding.hpp"
#include "torture/recorder.hpp"
#include "torture/witness_store.hpp"

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

namespace holdfast::torture {

// What all threads of a process share.
struct scratch_folder {
  const assignment& sent;
  const std::vector<resource>& resources;
  const holdfast::client& client;
  witness_store& witness;
  recorder& history;
  torture::board& board;
  std::stop_token stop;
  std::atomic<std::int32_t>& next_hold;

  [[nodiscard]] sim::moment now() const { return clock::now() - sent.start(); }
};

// Used by its own thread only.
class worker_thread {
 public:
  worker_thread(scratch_folder& place, std::uint32_t thread);

  // Locks, until the stop.
  void work();
  // Latches, one per half second, each with one who sets it, two who count down, and all who wait.
  void count_latches();

 private:
  void round(std::size_t which);
  void take_several();
  // Records the request and its answer around the call; the hold is then kept, and given back.
  template <class Acquire>
  void take(sim::record line, Acquire acquire);
  sim::record request(std::size_t which);
  acquire_options patience(sim::record& line);
  void keep(std::vector<holding>& holds, const std::function<void()>& give_back);
  [[nodiscard]] duration how_long();
  void failed(sim::record line, const error& why);
  void latch_round(std::int64_t number);
  // Until the span is over, or the run.
  void rest(duration span);

  scratch_folder& place_;
  std::uint32_t thread_;
  sim::random_source random_;
  std::mutex alone_;
  std::condition_variable_any nobody_;  // notifies; a stop ends the wait
};

}  // namespace holdfast::torture
