// Signals as messages to be read, instead of interruptions. Made before any thread exists, so that
// no thread of the process takes one of them another way.
#pragma once

#include "cli/descriptor.hpp"

#include <holdfast/clock.hpp>

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>

namespace holdfast::cli {

// Not thread-safe. Stays in force until the process ends: there is nothing to go back to.
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
  // Waits for it, however long.
  // `on_beat` is called whenever `beat` has passed.
  [[nodiscard]] int wait_for_end(duration beat = forever,
                                 const std::function<void()>& on_beat = {});

  // INT TERM HUP QUIT USR1 USR2, unless whoever started us had it ignored, as nohup does.
  [[nodiscard]] bool ends_wait(int number) const noexcept;

  // Stops this process and all of its group, as ^Z does, until somebody continues it. False: it was
  // not stopped, because nobody could continue it. Takes a SIGCONT out of the inbox.
  static bool stop_with_pipeline() noexcept;

  // In a child between vfork() and exec(): what the process was started with. Async-signal-safe.
  void restore() const noexcept;

 private:
  sigset_t former_{};
  sigset_t ignored_{};
  struct sigaction former_pipe_ {};
  struct sigaction former_size_ {};
  descriptor file_;
};

// "SIGTERM"
std::string signal_name(int number);

}  // namespace holdfast::cli
