// Signals as messages to be read, instead of interruptions.
#pragma once

#include "cli/output.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::cli {

// Made before any thread exists, so that no thread of the process receives one of them any other
// way. Not thread-safe. Stays in force until the process ends: there is nothing to go back to.
class signal_inbox {
 public:
  struct message {
    int number = 0;
    pid_t sender = 0;  // 0: the kernel, as for ^C
  };

  signal_inbox();
  signal_inbox(const signal_inbox&) = delete;
  signal_inbox& operator=(const signal_inbox&) = delete;

  // Readable when a message is there.
  [[nodiscard]] int get() const noexcept { return file_.get(); }
  // The next one, without waiting.
  [[nodiscard]] std::optional<message> take() noexcept;

  // The next one that ends a wait, without waiting; SIGTSTP stops this process meanwhile.
  [[nodiscard]] std::optional<int> take_end() noexcept;
  // Waits for it, however long it takes. `on_beat` is called whenever `beat` has passed.
  [[nodiscard]] int wait_for_end(duration beat = forever,
                                 const std::function<void()>& on_beat = {});

  // INT TERM HUP QUIT USR1 USR2, unless we were started with it ignored, as by nohup.
  [[nodiscard]] bool ends_wait(int number) const noexcept;

  // Stops this process and all of its group, as ^Z does, until somebody continues it. False: it was
  // not stopped, because nobody could continue it. Takes a SIGCONT out of the inbox.
  static bool stop_with_pipeline() noexcept;

  // In a child between vfork() and exec(): restores what the process was started with.
  // Async-signal-safe.
  void restore() const noexcept;

 private:
  sigset_t former_{};
  sigset_t ignored_{};
  struct sigaction former_pipe_ {};
  struct sigaction former_size_ {};
  runtime::descriptor file_;
};

// "SIGTERM"
std::string signal_name(int number);

// As process 1 of a container we inherit the children of others: reaps them, so that they do not
// stay zombies. Never reaps the child that is still `watched`.
void reap_orphans(pid_t watched = 0) noexcept;

// "the demo was ended by SIGTERM", with 128 + n.
complaint ended_by_signal(int signal, const std::string& before = {},
                          const std::string& after = {});

// While the main thread waits in the library, another reads the signals, so that they end the wait.
//
//   opening:  nothing is claimed yet; a signal ends the process at once, with 128 + n
//   waiting:  a signal requests a stop, and the waiter cleans up
//   over:     signals stay in the inbox, for the next reader
//
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
  runtime::descriptor quit_;
  std::stop_source stop_;
  std::atomic<bool> waiting_{false};
  std::atomic<int> seen_{0};
  std::jthread reader_;
};

}  // namespace holdfast::cli
