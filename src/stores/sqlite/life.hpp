// The sign of life: a file that its client keeps locked. The kernel unlocks it when the last
// descriptor of it is closed, however the process ends, and not while it is only stopped. No pid is
// compared, so a pid that is used again means nothing.
//
// The lock is an OFD lock: it belongs to the open file description, not to the process, so that two
// clients of one process see each other, and closing another descriptor of the file drops nothing.
#pragma once

#include "stores/sqlite/descriptor.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/rows.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::sqlite {

// Not thread-safe. Ends with the object, and when the process ends.
class life {
 public:
  static result<life> begin(const folder& at, const std::string& token);

  [[nodiscard]] std::uint64_t inode() const noexcept { return inode_; }
  // Writes into the file that this client was heard at that time.
  void speak(spi::server_time now) const noexcept;
  // Writes into the file which socket keeps this client alive in another process.
  void give_away(std::uint64_t parcel) const noexcept;
  // Somebody deleted the file.
  [[nodiscard]] bool deleted() const noexcept;
  // A further descriptor of the same description, close-on-exec, which the caller owns: a child
  // that inherits it keeps this client alive. -1 with errno.
  [[nodiscard]] int share() const noexcept;

 private:
  explicit life(descriptor file, std::uint64_t inode) : file_(std::move(file)), inode_(inode) {}

  descriptor file_;
  std::uint64_t inode_;
};

// Does the client live? A client that has ended never lives again. In doubt (no memory, no
// descriptors left): yes.
bool alive(const folder& at, const peer& client) noexcept;

// When a client last said that it waits; the beginning of time where it never did, or that cannot be read.
spi::server_time last_word(const folder& at, const std::string& token) noexcept;

// The inode of the socket that a client gave another process to be kept alive by, the last one; 0: none.
std::uint64_t parcel_given(const folder& at, const std::string& token) noexcept;

// Who keeps a client alive whose own process has ended: a process that inherited its sign of life.
//
// "pid 4712 (sleep)", for people. Nothing: the client's own process lives, it never handed its sign of
// life on, or nobody can be seen that has it (another user's process, another pid namespace).
std::optional<std::string> heir_of(const folder& at, const std::string& token);

}  // namespace holdfast::sqlite
