#include "cli/program_path.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace holdfast::cli {

namespace {

// 0, or why it cannot be executed.
int trouble_with(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  // AT_EACCESS: exec asks for the effective user.
  if (::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) return errno;
  return 0;
}

tl::unexpected<complaint> refusal(const std::string& name, int number) {
  const bool missing = number == ENOENT || number == ENOTDIR;
  const std::string what = missing ? "command not found" : "command cannot be executed";
  return tl::unexpected(
      complaint{missing ? exit_code::not_found : exit_code::not_executable,
                what + ": " + name + " (exec, " + std::strerror(number) + "; no lock was taken)"});
}

std::string search_path() {
  if (const char* path = std::getenv("PATH"); path != nullptr) return path;
  return "/bin:/usr/bin";  // as execvp
}

}  // namespace

outcome<std::string> find_program(const std::string& name) {
  if (name.empty()) return refusal("''", ENOENT);
  if (name.find('/') != std::string::npos) {
    const int trouble = trouble_with(name);
    if (trouble != 0) return refusal(name, trouble);
    return name;
  }
  int worst = ENOENT;
  const std::string folders = search_path();
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = folders.substr(at, end - at);
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    const int trouble = trouble_with(path);
    if (trouble == 0) return path;
    if (trouble != ENOENT && trouble != ENOTDIR) worst = trouble;
    at = end + 1;
  }
  return refusal(name, worst);
}

}  // namespace holdfast::cli
