// Where the store lives: the database, and beside it the folder of signs of life. Finds the one
// true path, so that two ways to the same file meet in the same folder, and refuses what cannot
// work before anything is written.
#pragma once

#include <holdfast/result.hpp>

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sqlite {

struct location {
  std::string database;  // absolute, without symbolic links
  std::string folder;    // the database's path + ".d"
  // What is made beside the database has the database's own mode and group, so that whoever may
  // use the file may use all of it, and nobody else.
  mode_t file_mode = 0600;
  mode_t folder_mode = 0700;
  gid_t group = 0;
  uid_t owner = 0;
  bool made_folder = false;  // just now
};

// Makes the database's file (empty, 0600) and the folder where they are missing.
// name_conflict: something that is no regular file or not ours is there. denied: may not be read or written.
// unsupported: network file system, hard links, a newer format. invalid: no path at all.
result<location> locate(const std::string& path);
// The folder again, where it was made for nothing: nothing of ours is left beside a file that is not.
void forsake(const location& at) noexcept;

// The name of a file system that several machines may share, by its statfs magic. Locks and shared
// memory of two machines do not meet there.
std::optional<std::string_view> shared_file_system(long magic);

// ${XDG_STATE_HOME:-$HOME/.local/state}/holdfast/holdfast.db; its folder is made, 0700. invalid:
// neither variable is set.
result<std::string> default_path();

}  // namespace holdfast::sqlite
