// A program that a test starts. It ends with the test, whatever happens: killed by the destructor,
// and by the kernel when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe.
class child_process {
 public:
  child_process() = default;
  // The program is looked for in PATH; its output is appended to the log. Throws std::system_error.
  child_process(const std::vector<std::string>& arguments, const std::filesystem::path& log);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) noexcept;
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process();

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  [[nodiscard]] bool alive() noexcept;
  // How it ended, if it has and this was not reported yet: the exit status, or 1000 + the signal.
  [[nodiscard]] std::optional<int> ended() noexcept;
  void signal(int number) const noexcept;
  // SIGSTOP, and waits until it has stopped: it takes effect later than kill() returns.
  void pause() const noexcept;
  // The same for it and then for the processes that it started, and SIGCONT for all of them.
  void pause_all() const;
  void resume_all() const;
  // SIGKILL to all of them, and waits until they are gone: the processes that it started outlive it
  // by a moment, and their ports and files cannot be used again before that.
  void kill_all();
  // Sends the signal and waits for the end.
  void end(int number) noexcept;
  // Waits for the end; the exit status, or -1 if a signal ended it.
  int wait() noexcept;

 private:
  [[nodiscard]] std::vector<pid_t> children() const;

  pid_t id_ = 0;
};

// The last lines of what it wrote: enough to see why it does not start.
std::string end_of_log(const std::filesystem::path& log);

// Runs a program to its end and returns what it wrote. Throws if it cannot be
// run or ends with another status than 0.
std::string run_program(const std::vector<std::string>& arguments);

}  // namespace holdfast::test
