// A line that grows while a sale goes on; only on a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace holdfast::cli {

class progress {
 public:
  progress(std::string label, std::size_t total);
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress();  // wipes the line

  void show(std::size_t done) const;

 private:
  std::string label_;
  std::size_t total_;
  bool visible_;
};

}  // namespace holdfast::cli
