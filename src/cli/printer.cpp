#include "cli/printer.hpp"

#include "cli/complaint.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

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

progress::progress(std::string label, std::size_t total, std::string unit)
    : label_(std::move(label)),
      total_(total),
      unit_(std::move(unit)),
      visible_(::isatty(STDERR_FILENO) == 1) {}

void progress::wipe() const {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void progress::show(std::size_t done) const {
  if (!visible_ || total_ == 0) return;
  constexpr std::size_t width = 40;
  const std::size_t full = std::min(width, done * width / total_);
  std::string bar(full, '#');
  bar.resize(width, '.');
  std::fprintf(stderr, "\r%-10s [%s] %zu of %zu %s", label_.c_str(), bar.c_str(),
               std::min(done, total_), total_, unit_.c_str());
}

}  // namespace holdfast::cli
