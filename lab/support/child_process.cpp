// fork and exec by hand, since posix_spawn knows no PR_SET_PDEATHSIG.
#include "support/child_process.hpp"

#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace holdfast::test {

namespace {

// Only calls that are safe between fork and exec.
[[noreturn]] void become(char* const* arguments, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent ended before the prctl call
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(127);
}

struct process_state {
  char state = 'X';  // as in ps(1); X: gone
  pid_t parent = 0;
};

process_state look_at(pid_t id) {
  std::ifstream file("/proc/" + std::to_string(id) + "/stat");
  std::string line;
  std::getline(file, line);
  process_state found;
  const auto end = line.rfind(')');  // of the program's name, which may contain anything
  if (end != std::string::npos)
    std::istringstream(line.substr(end + 1)) >> found.state >> found.parent;
  return found;
}

bool gone(pid_t id) {
  const char state = look_at(id).state;
  return state == 'Z' || state == 'X';
}

bool stands(pid_t id) { return gone(id) || look_at(id).state == 'T'; }

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

std::vector<pid_t> child_process::children() const {
  std::vector<pid_t> found;
  for (const auto& each : std::filesystem::directory_iterator("/proc")) {
    const std::string name = each.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto id = static_cast<pid_t>(std::stoi(name));
    if (look_at(id).parent == id_) found.push_back(id);
  }
  return found;
}

// Once the parent is stopped, there are no new children.
void child_process::pause_all() const {
  if (id_ <= 0) return;
  pause();
  const auto all = children();
  for (const pid_t each : all) ::kill(each, SIGSTOP);
  for (const pid_t each : all) {
    if (!eventually([each] { return stands(each); })) {
      throw std::runtime_error("a process does not stop");
    }
  }
}

void child_process::resume_all() const {
  if (id_ <= 0) return;
  for (const pid_t each : children()) ::kill(each, SIGCONT);
  signal(SIGCONT);
}

void child_process::kill_all() {
  if (id_ <= 0) return;
  pause();
  const auto all = children();
  for (const pid_t each : all) ::kill(each, SIGKILL);
  end(SIGKILL);
  for (const pid_t each : all) {
    if (!eventually([each] { return gone(each); }))
      throw std::runtime_error("a process does not end");
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

std::string end_of_log(const std::filesystem::path& log) {
  constexpr std::streamoff shown = 4'000;
  std::ifstream file(log, std::ios::ate);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - shown, 0));
  return {std::istreambuf_iterator<char>(file), {}};
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
