// The controlling terminal, if there is one, and whose turn at it it is.
//
// CMD runs in a process group of its own, and only one group may read from the terminal. It gets
// the terminal at its start, unless holdfast stands in a pipeline (`holdfast run ... | less`), whose
// other members would lose it; then it gets it when it first asks.
#pragma once

#include "cli/descriptor.hpp"

#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace holdfast::cli {

// Not thread-safe. SIGTTOU must be blocked. States: ours, given.
class terminal {
 public:
  terminal();

  [[nodiscard]] bool exists() const noexcept { return static_cast<bool>(file_); }
  // Our group may read from it: we may give it away.
  [[nodiscard]] bool ours() const noexcept;
  // The connection is gone.
  [[nodiscard]] bool hung_up() const noexcept;
  [[nodiscard]] bool to_be_given_at_start() const noexcept;

  // The parent calls give(); the child gives it to itself too, so that it is there before exec():
  // pass() is async-signal-safe.
  void give(pid_t group) noexcept;
  void pass(pid_t group) const noexcept;
  [[nodiscard]] bool given() const noexcept { return given_; }
  // To our group; only from that one, or from one that is gone.
  void take_back(pid_t group) noexcept;
  // Modes as they were at the start: after a child that was killed in the middle of its own.
  void restore_modes() noexcept;

 private:
  descriptor file_;
  std::optional<termios> modes_;
  bool given_ = false;
};

}  // namespace holdfast::cli
