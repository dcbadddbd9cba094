// A program on a terminal of its own, as a person uses one.
#pragma once

#include "cli/program.hpp"

#include <sys/types.h>

#include <map>
#include <string>

namespace holdfast::cli_test {

// Not thread-safe. The program leads the session; hanging up is closing the terminal.
class terminal_process {
 public:
  terminal_process(const words& command, const std::map<std::string, std::string>& environment,
                   const std::string& started_in);
  terminal_process(const terminal_process&) = delete;
  terminal_process& operator=(const terminal_process&) = delete;
  ~terminal_process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits until the screen has shown the text.
  bool shows(const std::string& text);
  void types(const std::string& keys) const;
  void hangs_up();
  // Waits for its end: the exit code, or 1000 + the signal that it died of.
  int end();
  [[nodiscard]] const std::string& screen();

 private:
  void read_screen();

  pid_t pid_ = -1;
  int file_ = -1;
  std::string screen_;
};

}  // namespace holdfast::cli_test
