// The gate: one process at a time in a write transaction. SQLite's own waiting is a loop of sleeps,
// which starves under load (1.7 s seen among 16 processes); flock() queues in the kernel.
//
// A wait for it has a deadline, because a process may be stopped inside. flock() has none, so:
// 1. a few tries that give up the processor in between: who is inside needs microseconds;
// 2. then a helper thread blocks in flock() and whoever wants in waits for it, until its deadline.
//    A helper that succeeds after everyone gave up unlocks again.
// The helper is started at the first need and is not joined: nothing can wake it from flock() but
// the one who is inside. It owns what it uses.
#pragma once

#include "stores/sqlite/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <memory>
#include <string>

namespace holdfast::sqlite {

// Used by one thread of the store at a time (see turn.hpp). States: outside, inside.
class gate_file {
 public:
  // Opens or makes the file in the folder.
  static result<gate_file> open(int folder, const std::string& path, mode_t mode);

  gate_file(gate_file&&) noexcept;
  gate_file& operator=(gate_file&&) noexcept;
  ~gate_file();

  // False: not inside by the deadline. Never fails otherwise.
  bool enter(time_point deadline);
  void leave() noexcept;

  // Somebody deleted it: whoever opens the store now has another gate.
  [[nodiscard]] bool deleted() const noexcept;

 private:
  class helper;

  explicit gate_file(descriptor file);

  std::shared_ptr<descriptor> file_;
  std::shared_ptr<helper> helper_;  // made at the first need
};

}  // namespace holdfast::sqlite
