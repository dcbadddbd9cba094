#include "cli/printer.hpp"

#include "cli/complaint.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace holdfast::cli {

namespace {

bool write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

bool print(std::string_view result) noexcept { return write_all(STDOUT_FILENO, result); }

int print_all(std::string_view result) noexcept {
  if (print(result)) return exit_code::ok;
  return tell(complaint{exit_code::no, std::string("cannot write the answer (stdout, write, ") +
                                           std::strerror(errno) + ")"});
}

void note(std::string_view text) noexcept {
  write_all(::isatty(STDOUT_FILENO) == 1 ? STDOUT_FILENO : STDERR_FILENO, text);
}

}  // namespace holdfast::cli
