#include "stores/sqlite/host.hpp"

#include <sys/stat.h>

#include <fstream>

namespace holdfast::sqlite {

result<host> this_host() {
  host here;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, here.boot) || here.boot.empty()) {
    return failure(errc::unsupported,
                   "sqlite, open, no boot id: /proc/sys/kernel/random/boot_id cannot be read");
  }
  struct stat status {};
  if (::stat("/proc/self/ns/time", &status) == 0) here.time_namespace = status.st_ino;
  return here;
}

}  // namespace holdfast::sqlite
