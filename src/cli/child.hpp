// The command that runs under the lock: a process group of its own, killed by the kernel when we
// die, with nothing of ours but what it is meant to have.
#pragma once

#include "cli/complaint.hpp"
#include "cli/signal_inbox.hpp"
#include "cli/terminal.hpp"

#include <sys/types.h>
#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace holdfast::cli {

struct child_plan {
  std::string program;                   // as find_program() found it
  std::vector<std::string> arguments;    // the first is the name as the user gave it
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<int> descriptors;          // inherited beside 0 to 2; they stay the caller's
};

// Used by one thread, which must be the main one: the parent-death signal comes when the *thread*
// that forked ends. States: running, stopped, ended (a zombie, which keeps the group's number from
// being used again), buried.
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
  // Nobody of the group is left but the ended command. False where that cannot be told.
  [[nodiscard]] bool alone() const;
  // Its exit code, or 128 + the signal that it died of. Only once, when it has ended.
  struct ending {
    int code = 0;
    int signal = 0;  // 0: it exited
  };
  ending reap() const noexcept;

 private:
  explicit child(pid_t pid) noexcept : pid_(pid) {}

  pid_t pid_;
};

// As process 1 of a container we inherit the children of others: they are waited for, so that they
// do not stay zombies. Never takes the child that is still `watched`.
void reap_orphans(pid_t watched = 0) noexcept;

// Where a command's program is, found out before a lock is taken for it.
//
// As a shell looks for it: by PATH unless it has a '/'. Complains with 127 if there is none, with
// 126 if there is one that cannot be executed.
outcome<std::string> find_program(const std::string& name);

}  // namespace holdfast::cli
