// The folder beside the database, where each client has a file that shows that it lives and a
// socket where it is reached.
#pragma once

#include "stores/sqlite/descriptor.hpp"
#include "stores/sqlite/location.hpp"

#include <holdfast/result.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

namespace holdfast::sqlite {

// A socket's address; the length counts.
struct socket_address {
  sockaddr_un name{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&name);
  }
};

// Immutable once made.
class folder {
 public:
  static result<folder> open(const location& at);

  [[nodiscard]] int get() const noexcept { return handle_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] mode_t file_mode() const noexcept { return file_mode_; }

  // Of a file in the folder. Socket paths end at 107 bytes; longer ones go through /proc.
  [[nodiscard]] socket_address address(const std::string& name) const;
  void remove(const std::string& name) const noexcept;

 private:
  folder(descriptor handle, const location& at)
      : handle_(std::move(handle)), path_(at.folder), file_mode_(at.file_mode) {}

  descriptor handle_;
  std::string path_;
  mode_t file_mode_;
};

// How another client is found: its number in the database, its name in the folder, and the inode of
// its sign of life, which can be looked for even where somebody deleted the name.
struct peer {
  std::int64_t number = 0;
  std::string token;
  std::uint64_t inode = 0;

  [[nodiscard]] std::string socket() const { return token + ".sock"; }
};

}  // namespace holdfast::sqlite
