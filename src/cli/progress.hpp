// A line that grows while something goes on; only on a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace holdfast::cli {

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
