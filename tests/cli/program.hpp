// The program as a user types it: real processes, real files, an environment of its own.
#pragma once

#include "support/temporary_folder.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli_test {

// Generous: a loaded machine is slow, and nothing is waited for longer than it takes.
inline constexpr std::chrono::seconds limit{180};

// Checks repeatedly until it is true; false: not within the limit.
bool eventually(const std::function<bool()>& condition);

struct answer {
  int code = -1;    // the exit code; -1: it died of a signal
  int signal = 0;   // which
  std::string out;  // stdout
  std::string err;  // stderr
};

using words = std::vector<std::string>;

// A folder for one test, gone with it.
class folder {
 public:
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  test::temporary_folder folder_;
  std::string path_ = folder_.path().string();
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

// A program that was started. Killed if it still runs when the object is destroyed.
class process {
 public:
  process(pid_t pid, std::string out, std::string err);
  process(process&& other) noexcept;
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(int signal) const;
  [[nodiscard]] bool running();
  // Waits for its end.
  answer end();
  // Waits until stdout (or stderr) has the text.
  [[nodiscard]] bool says(const std::string& text) const;
  [[nodiscard]] bool complains(const std::string& text) const;
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  pid_t pid_;
  std::string out_;
  std::string err_;
  std::optional<int> status_;
};

// How programs are started: HOME and TMPDIR are the test's folder, and no variable of holdfast is
// set.
class shell {
 public:
  explicit shell(const folder& home);

  std::map<std::string, std::string> environment;
  std::string input;       // what stdin has; empty: /dev/null
  std::string started_in;  // empty: the test's folder

  process start(const words& command);  // any program
  process start_holdfast(const words& arguments);
  answer run(const words& command);
  answer holdfast(const words& arguments);

 private:
  const folder& home_;
  int count_ = 0;
};

// build/holdfast
std::string program_path();
// Throws if a test cannot have started this process.
void signal_one(pid_t pid, int number);
// As ps shows it: 'S' sleeps, 'T' is stopped, 'Z' is a zombie; 'X': there is none.
char state_of(pid_t pid);
// Whether the process exists and is not a zombie.
bool alive(pid_t pid);

}  // namespace holdfast::cli_test
