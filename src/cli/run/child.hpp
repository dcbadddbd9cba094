// The command that runs under the lock, and the terminal that it gets. A process group of its own,
// killed by the kernel when we die, which inherits only what it is meant to have.
#pragma once

#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "runtime/descriptor.hpp"

#include <sys/types.h>
#include <termios.h>
#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// The controlling terminal, if there is one, and which group has it.
//
// CMD runs in a process group of its own, and only one group may read from the terminal. It gets
// the terminal at its start, unless holdfast is part of a pipeline (`holdfast run ... | less`),
// whose other members would lose it; then it gets it when it first asks for it.
//
// Not thread-safe. SIGTTOU must be blocked. States: ours, given.
class terminal {
 public:
  terminal();

  [[nodiscard]] bool exists() const noexcept { return file_.get() >= 0; }
  // Our group may read from it, and so may give it away.
  [[nodiscard]] bool ours() const noexcept;
  // The connection is gone.
  [[nodiscard]] bool hung_up() const noexcept;
  [[nodiscard]] bool to_be_given_at_start() const noexcept;

  // The parent calls give(); the child also gives it to itself, so that it has it before exec():
  // pass() is async-signal-safe.
  void give(pid_t group) noexcept;
  void pass(pid_t group) const noexcept;
  [[nodiscard]] bool given() const noexcept { return given_; }
  // Takes it back for our group; only from `group`, or from one that is gone.
  void take_back(pid_t group) noexcept;
  // Restores the modes of the start, after a child was killed while its own were set.
  void restore_modes() noexcept;

 private:
  runtime::descriptor file_;
  std::optional<termios> modes_;
  bool given_ = false;
};

struct child_plan {
  std::string program;                   // as find_program() found it
  std::vector<std::string> arguments;    // the first is the name as the user gave it
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<int> descriptors;          // inherited besides 0 to 2; they stay the caller's
};

// Used by one thread, which must be the main one: the parent-death signal comes when the *thread*
// that forked ends. States: running, stopped, ended (a zombie, which keeps the group's number from
// being reused), reaped.
class child {
 public:
  // The error is an errno of exec() or fork().
  static tl::expected<child, int> start(const child_plan& plan, const signal_inbox& inbox,
                                        terminal& terminal);

  [[nodiscard]] pid_t group() const noexcept { return pid_; }

  void signal_group(int number) const noexcept;
  void signal_leader(int number) const noexcept;

  // Since the last call, the command itself was stopped by this signal. 0: it was not.
  [[nodiscard]] int stopped_by() const noexcept;
  [[nodiscard]] bool ended() const noexcept;
  // Only the ended command is left of the group. False if that is not known.
  [[nodiscard]] bool alone() const;
  // Its exit code, or 128 + the signal that killed it. Only once, when it has ended.
  struct ending {
    int code = 0;
    int signal = 0;  // 0: it exited
  };
  ending reap() const noexcept;

 private:
  explicit child(pid_t pid) noexcept : pid_(pid) {}

  pid_t pid_;
};

// Where a command's program is, found before a lock is acquired for it.
//
// Searched as by a shell: in PATH unless it contains a '/'. Fails with 127 if there is none, with
// 126 if it cannot be executed.
outcome<std::string> find_program(const std::string& name);

}  // namespace holdfast::cli
