#include "cli/terminal.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>

namespace holdfast::cli {

terminal::terminal() : file_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
  termios modes{};
  if (file_ && ::tcgetattr(file_.get(), &modes) == 0) modes_ = modes;
}

bool terminal::ours() const noexcept { return file_ && ::tcgetpgrp(file_.get()) == ::getpgrp(); }

bool terminal::hung_up() const noexcept { return file_ && ::tcgetpgrp(file_.get()) < 0; }

bool terminal::to_be_given_at_start() const noexcept {
  if (!ours() || ::tcgetpgrp(STDIN_FILENO) != ::getpgrp()) return false;
  struct stat status {};
  return ::fstat(STDOUT_FILENO, &status) == 0 && !S_ISFIFO(status.st_mode) &&
         !S_ISSOCK(status.st_mode);
}

void terminal::give(pid_t group) noexcept {
  pass(group);
  given_ = true;
}

void terminal::pass(pid_t group) const noexcept {
  if (file_) ::tcsetpgrp(file_.get(), group);
}

void terminal::take_back(pid_t group) noexcept {
  if (!file_) return;
  given_ = false;
  const pid_t now = ::tcgetpgrp(file_.get());
  const bool orphaned = now > 0 && ::kill(-now, 0) != 0 && errno == ESRCH;
  if (now == group || orphaned) ::tcsetpgrp(file_.get(), ::getpgrp());
}

void terminal::restore_modes() noexcept {
  if (file_ && modes_ && ours()) ::tcsetattr(file_.get(), TCSADRAIN, &*modes_);
}

}  // namespace holdfast::cli
