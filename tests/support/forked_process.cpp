#include "support/forked_process.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace holdfast::test {

forked_process::forked_process(const std::function<void()>& part) {
  const pid_t parent = ::getpid();
  std::fflush(nullptr);
  id_ = ::fork();
  if (id_ < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (id_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(98);
  int status = 0;
  try {
    part();
  } catch (const std::exception& thrown) {
    std::fprintf(stderr, "in a forked part of the test: %s\n", thrown.what());
    status = 99;
  }
  std::fflush(nullptr);
  ::_exit(status);
}

forked_process::forked_process(forked_process&& other) noexcept
    : id_(std::exchange(other.id_, 0)) {}

forked_process& forked_process::operator=(forked_process&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

forked_process::~forked_process() { kill(); }

void forked_process::signal(int number) const noexcept {
  if (id_ != 0) ::kill(id_, number);
}

void forked_process::stop() noexcept {
  signal(SIGSTOP);
  int status = 0;
  while (id_ != 0 && ::waitpid(id_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void forked_process::kill() noexcept {
  signal(SIGKILL);
  wait();
}

int forked_process::wait() noexcept {
  if (id_ == 0) return -1;
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void enter_own_mounts() {
  const int flags = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(flags) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw std::runtime_error("a mount namespace of our own");
  }
}

}  // namespace holdfast::test
