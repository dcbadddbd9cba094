// One thread of a client process: round after round of one workload or another.
#pragma once

#include "sim/random.hpp"
#include "torture/shared_files.hpp"
#include "torture/witness_store.hpp"

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

namespace holdfast::torture {

// A lease while it is held, as the history sees it: until when it was certainly valid.
//
// Used by one thread. The lease must outlive it and stay in place.
class holding {
 public:
  // `granted`: the record of the grant, not yet written; it is written here, after the slot.
  holding(const lease& held, sim::record granted, time_point start, recorder& history,
          hold_slot& slot)
      : lease_(&held), line_(granted), start_(start), history_(&history), slot_(&slot) {
    line_.fence = held.fence().value();
    seen_ = since_start(clock::now());
    valid_ = held.valid();
    note();
    slot_->hold.store(line_.hold);
    write(sim::what::acquire_granted, seen_, held.ttl());
    if (!valid_) end(seen_);
  }

  // Checks whether it is still valid.
  bool look() {
    if (!valid_) return false;
    const sim::moment now = since_start(clock::now());
    if (lease_->valid()) {
      seen_ = now;
      note();
      return true;
    }
    // Reported lost before its time: only the last look is certain.
    end(now >= until_ ? std::max(seen_, until_) : seen_);
    return false;
  }

  [[nodiscard]] bool valid() const noexcept { return valid_; }
  [[nodiscard]] const sim::record& line() const noexcept { return line_; }
  [[nodiscard]] bool exclusive() const noexcept { return line_.mode == spi::mode::exclusive; }

  // To be called before its release.
  void leave() {
    if (look()) end(seen_);
    write(sim::what::release_invoked, since_start(clock::now()));
    slot_->hold.store(0);
  }
  void left(std::int64_t answer) {
    line_.number = answer;
    write(sim::what::release_answered, since_start(clock::now()));
  }
  void wrote(bool accepted, bool valid_throughout) {
    line_.number = valid_throughout ? 1 : 0;
    // Dated by the check after it: a process that is stopped between that and this line wrote
    // before it was stopped.
    write(accepted ? sim::what::write_accepted : sim::what::write_refused,
          valid_throughout ? seen_ : since_start(clock::now()));
  }

 private:
  [[nodiscard]] sim::moment since_start(time_point at) const { return at - start_; }

  void note() {
    const time_point until = lease_->valid_until();
    until_ = until == time_point::max() ? sim::moment::max() : since_start(until);
    slot_->until.store(until_.count());
  }
  void end(sim::moment at) {
    valid_ = false;
    write(sim::what::validity_ended, at);
  }
  void write(sim::what kind, sim::moment at, sim::moment until = {}) {
    line_.kind = kind;
    line_.at = at;
    line_.until = until;
    history_->add(line_);
  }

  const lease* lease_;
  sim::record line_;
  time_point start_;
  recorder* history_;
  hold_slot* slot_;
  bool valid_ = false;
  sim::moment seen_{};   // the last look at which it was valid
  sim::moment until_{};  // its end, as it was then
};

// What all threads of a process share.
struct worker_context {
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
  worker_thread(worker_context& context, std::uint32_t thread);

  // Locks, until the stop.
  void work();
  // Latches, one per half second, each with one thread that sets it, two that count down, and all
  // that wait.
  void count_latches();

 private:
  void round(std::size_t which);
  void take_several();
  // Records the request and its answer around the call; the hold is then kept, and released.
  template <class Acquire>
  void take(sim::record line, Acquire acquire);
  sim::record request(std::size_t which);
  acquire_options patience(sim::record& line);
  void keep(std::vector<holding>& holds, const std::function<void()>& give_back);
  [[nodiscard]] duration how_long();
  void failed(sim::record line, const error& why);
  void latch_round(std::int64_t number);
  // Until the span or the run is over.
  void rest(duration span);

  worker_context& context_;
  std::uint32_t thread_;
  sim::random_source random_;
  std::mutex alone_;
  std::condition_variable_any nobody_;  // notifies; a stop ends the wait
};

}  // namespace holdfast::torture
