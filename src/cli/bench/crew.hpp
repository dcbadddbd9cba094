// The processes of a measurement, from their start to what they found out.
#pragma once

#include "cli/bench/bench_message.hpp"
#include "cli/bench/relay.hpp"
#include "cli/complaint.hpp"
#include "cli/descriptor.hpp"
#include "cli/signal_inbox.hpp"

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

namespace holdfast::cli {

// Used by one thread, the main one: the workers die with it. States: starting, ready, started, over.
// Destroyed early, it closes the sockets, which ends the workers' waits, and kills who stays.
class crew {
 public:
  // Starts this program again so many times. Throws std::system_error.
  crew(const worker_plan& plan, signal_inbox& inbox);
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew();

  // Waits until all are connected. False: trouble, or a signal.
  [[nodiscard]] bool get_ready();
  void start(time_point when);
  // Waits until then, or until something goes wrong: then false. Calls `tick` now and then.
  [[nodiscard]] bool wait_until(time_point when, const std::function<void()>& tick);
  // Waits for the results, one per process; empty: trouble, or a signal.
  [[nodiscard]] std::vector<worker_result> take();

  [[nodiscard]] const std::optional<complaint>& trouble() const noexcept { return trouble_; }
  [[nodiscard]] int ended_by() const noexcept { return ended_by_; }  // a signal; 0: none

 private:
  struct member {
    pid_t pid = 0;
    descriptor line;
    line_reader lines;
    bool ready = false;
    std::optional<worker_result> result{};
  };

  void start_one(const worker_plan& plan);
  [[nodiscard]] bool fine() const noexcept { return !trouble_ && ended_by_ == 0; }
  // Takes in what comes until it is so, or the time is over, or something is wrong.
  void listen(const std::function<bool()>& done, time_point until);
  void hear(member& one);
  void read_signals();
  void end() noexcept;

  signal_inbox& inbox_;
  relay relay_;
  std::vector<member> members_;
  std::optional<complaint> trouble_;
  int ended_by_ = 0;
};

}  // namespace holdfast::cli
