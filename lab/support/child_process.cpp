// See the header. fork and exec by hand, since posix_spawn knows no PR_SET_PDEATHSIG.
#include "support/child_process.hpp"

#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace holdfast::test {

namespace {

// Only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before we asked
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

child_process::child_process(const std::vector<std::string>& arguments,
                             const std::filesystem::path& log) {
  std::vector<char*> pointers;
  for (const std::string& one : arguments) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) throw std::system_error(errno, std::system_category(), log);
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ == 0) become(pointers.data(), output, parent);
  ::close(output);
  if (id_ < 0) throw std::system_error(errno, std::system_category(), "fork");
}

child_process::child_process(child_process&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

child_process& child_process::operator=(child_process&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

child_process::~child_process() { end(SIGKILL); }

bool child_process::alive() noexcept {
  if (id_ == 0) return false;
  if (::waitpid(id_, nullptr, WNOHANG) == 0) return true;
  id_ = 0;
  return false;
}

std::optional<int> child_process::ended() noexcept {
  int status = 0;
  if (id_ == 0 || ::waitpid(id_, &status, WNOHANG) != id_) return std::nullopt;
  id_ = 0;
  constexpr int by_signal = 1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : by_signal + WTERMSIG(status);
}

void child_process::signal(int number) const noexcept {
  if (id_ != 0) ::kill(id_, number);
}

void child_process::pause() const noexcept {
  if (id_ <= 0) return;
  signal(SIGSTOP);
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(id_), &how, WSTOPPED | WEXITED | WNOWAIT) == -1 &&
         errno == EINTR) {
  }
}

void child_process::end(int number) noexcept {
  signal(number);
  signal(SIGCONT);
  wait();
}

int child_process::wait() noexcept {
  if (id_ == 0) return -1;
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string run_program(const std::vector<std::string>& arguments) {
  const temporary_folder folder;
  const auto log = folder.path() / "output";
  child_process program(arguments, log);
  const int status = program.wait();
  std::ifstream file(log);
  std::string output{std::istreambuf_iterator<char>(file), {}};
  if (status != 0) {
    throw std::runtime_error(arguments.front() + ": status " + std::to_string(status) + ": " +
                             output);
  }
  return output;
}

}  // namespace holdfast::test
