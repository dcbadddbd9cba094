// Where the store lives: the database, and beside it the folder of signs of life. Finds the real
// path, so that two paths to the same file lead to the same folder, and refuses what cannot work
// before anything is written.
#pragma once

#include "stores/sqlite/descriptor.hpp"

#include <holdfast/result.hpp>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sqlite {

struct location {
  std::string database;  // absolute, without symbolic links
  std::string folder;    // the database's path + ".d"
  // Files beside the database get the database's own mode and group, so that exactly those who may
  // use the database may use them.
  mode_t file_mode = 0600;
  mode_t folder_mode = 0700;
  gid_t group = 0;
  uid_t owner = 0;
  bool made_folder = false;  // just now
};

// Creates the database's file (empty, 0600) and the folder if they are missing. name_conflict:
// something that is not a regular file, or not ours, is there. denied: may not be read or written.
// unsupported: network file system, hard links, a newer format. invalid: not a path.
result<location> locate(const std::string& path);
// Removes the folder if it was created for nothing: nothing of ours is left beside
// a file that is not ours.
void forsake(const location& at) noexcept;

// A path that the system refused, and why. `otherwise`: the code if the reason is neither
// permissions (denied) nor lack of room or descriptors (unavailable).
tl::unexpected<error> refusal_by_system(const std::string& path, int number,
                                        errc otherwise = errc::denied);

// The name of a file system that several machines may share, by its statfs magic. Locks and shared
// memory do not work between machines there.
std::optional<std::string_view> shared_file_system(long magic);

// A socket's address; the length counts.
struct socket_address {
  sockaddr_un name{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&name);
  }
};

// The folder beside the database, where each client has a file that shows that it lives and a
// socket to reach it. Immutable once made.
class folder {
 public:
  static result<folder> open(const location& at);

  [[nodiscard]] int get() const noexcept { return handle_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] mode_t file_mode() const noexcept { return file_mode_; }

  // For a file in the folder. Socket paths have at most 107 bytes; longer ones go through /proc.
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
// its sign of life, which can be looked for even if somebody deleted the name.
struct peer {
  std::int64_t number = 0;
  std::string token;
  std::uint64_t inode = 0;

  [[nodiscard]] std::string socket() const { return token + ".sock"; }
};

}  // namespace holdfast::sqlite
