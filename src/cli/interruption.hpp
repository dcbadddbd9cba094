// While the main thread waits in the library, another reads the signals, so that they end the wait.
//
//   opening:  nothing is claimed yet; a signal ends the process at once, with 128 + n
//   waiting:  a signal requests a stop, and the waiter cleans up
//   over:     signals stay in the inbox, for the next reader
#pragma once

#include "cli/descriptor.hpp"
#include "cli/signal_inbox.hpp"

#include <atomic>
#include <optional>
#include <stop_token>
#include <thread>

namespace holdfast::cli {

// Used by the main thread; the reading thread ends with over() or the destructor.
class interruption {
 public:
  explicit interruption(signal_inbox& inbox);
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption();

  // From now on a signal requests a stop through the token.
  std::stop_token waiting() noexcept;
  // The signal that ended the wait, if one did. To be called once.
  std::optional<int> over() noexcept;

 private:
  void read();
  void end_wait(int number);

  signal_inbox& inbox_;
  descriptor quit_;
  std::stop_source stop_;
  std::atomic<bool> waiting_{false};
  std::atomic<int> seen_{0};
  std::jthread reader_;
};

}  // namespace holdfast::cli
