#include "stores/sqlite/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace holdfast::sqlite {

result<folder> folder::open(const location& at) {
  descriptor handle = descriptor::made_by(
      [&] { return ::open(at.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
  if (!handle) {
    return failure(errno == EMFILE || errno == ENFILE ? errc::unavailable : errc::denied,
                   "sqlite, open " + at.folder + ", " + std::strerror(errno));
  }
  return folder(std::move(handle), at);
}

socket_address folder::address(const std::string& name) const {
  socket_address made;
  std::string path = path_ + "/" + name;
  if (path.size() >= sizeof(made.name.sun_path)) {
    path = "/proc/self/fd/" + std::to_string(get()) + "/" + name;
  }
  made.name.sun_family = AF_UNIX;
  path.copy(made.name.sun_path, sizeof(made.name.sun_path) - 1);
  made.size = sizeof(made.name);
  return made;
}

void folder::remove(const std::string& name) const noexcept {
  if (get() >= 0) ::unlinkat(get(), name.c_str(), 0);
}

}  // namespace holdfast::sqlite
