// What a person at a terminal reads while `run` waits: what it waits for, who holds that and for how
// long, and when it gives up. One line on stderr, from the first second on, rewritten every second
// and wiped when the wait is over.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"

#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::cli {

// Used by the main thread. A thread of its own asks the engine and ends with the object: an engine
// that does not answer delays the destructor by up to 5 s, but never over().
class waiting_note {
 public:
  // `client` outlives this object. `how.acquire.wait`: how long the wait is from now on. If nobody
  // can or wants to read it, there is no note.
  waiting_note(const client& client, const hold_arguments& how);
  waiting_note(const waiting_note&) = delete;
  waiting_note& operator=(const waiting_note&) = delete;
  ~waiting_note();

  // Nothing is written after this.
  void over() noexcept;

 private:
  struct sight;  // what was seen of the lock that is waited for

  void work(const std::stop_token& stop);
  [[nodiscard]] sight look(const std::stop_token& stop) const;
  [[nodiscard]] std::string text(const sight& seen) const;
  // Waits until the time, or for over(): then false.
  bool pause_until(const std::stop_token& stop, time_point when);
  void show(const std::string& line);

  const client& client_;
  const std::vector<std::string>& names_;
  const time_point gives_up_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool over_ = false;    // guarded by mutex_
  bool told_ = false;    // guarded by mutex_: said once, in the background
  status_line line_;     // guarded by mutex_
  std::jthread writer_;  // last: uses all of the above
};

}  // namespace holdfast::cli
