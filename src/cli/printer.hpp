// Where output goes: results to stdout; notes for people to stdout too where that is a terminal,
// else to stderr, so that a pipe gets results only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::cli {

// False: stdout is full or closed.
bool print(std::string_view result) noexcept;
// The same as a command's last word: its exit code, having told what is wrong.
int print_all(std::string_view result) noexcept;
void note(std::string_view text) noexcept;

// A line that grows while something goes on; only on a terminal.
class progress {
 public:
  // `unit`: what is counted, as in "buyers".
  progress(std::string label, std::size_t total, std::string unit);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { wipe(); }

  void show(std::size_t done) const;
  void wipe() const;

 private:
  std::string label_;
  std::size_t total_;
  std::string unit_;
  bool visible_;
};

}  // namespace holdfast::cli
