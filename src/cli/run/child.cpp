#include "cli/run/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace holdfast::cli {

terminal::terminal() : file_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {
  termios modes{};
  if (exists() && ::tcgetattr(file_.get(), &modes) == 0) modes_ = modes;
}

bool terminal::ours() const noexcept { return exists() && ::tcgetpgrp(file_.get()) == ::getpgrp(); }

bool terminal::hung_up() const noexcept { return exists() && ::tcgetpgrp(file_.get()) < 0; }

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
  if (exists()) ::tcsetpgrp(file_.get(), group);
}

void terminal::take_back(pid_t group) noexcept {
  if (!exists()) return;
  given_ = false;
  const pid_t now = ::tcgetpgrp(file_.get());
  const bool orphaned = now > 0 && ::kill(-now, 0) != 0 && errno == ESRCH;
  if (now == group || orphaned) ::tcsetpgrp(file_.get(), ::getpgrp());
}

void terminal::restore_modes() noexcept {
  if (modes_ && ours()) ::tcsetattr(file_.get(), TCSADRAIN, &*modes_);
}

namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  // exec() does not write to them; its signature is older than const.
  for (const std::string& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

// Everything that the child needs, made before vfork(): after it the child uses our memory, which
// it must not change, while this thread waits for exec(). The copy of the memory that fork() makes
// would be thrown away at once.
struct launch {
  const char* program;
  std::vector<char*> arguments;
  std::vector<char*> shell;  // for a script without "#!", as in execvp
  std::vector<char*> environment;
  const std::vector<int>& descriptors;
  int report;
  pid_t parent;
  bool terminal_at_start;
};

void keep_only_standard_files() noexcept {
  if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  rlimit limit{};
  constexpr rlim_t most = 1 << 20;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > most) limit.rlim_cur = most;
  for (int file = 3; file < static_cast<int>(limit.rlim_cur); ++file) {
    ::fcntl(file, F_SETFD, FD_CLOEXEC);
  }
}

// Async-signal-safe throughout.
[[noreturn]] void become(const launch& how, const signal_inbox& inbox, const terminal& terminal) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before that: then no signal comes.
  if (::getppid() != how.parent) ::_exit(128 + SIGKILL);
  if (how.terminal_at_start) terminal.pass(::getpid());
  keep_only_standard_files();
  for (const int file : how.descriptors) ::fcntl(file, F_SETFD, 0);
  inbox.restore();
  ::execve(how.program, how.arguments.data(), how.environment.data());
  if (errno == ENOEXEC) ::execve("/bin/sh", how.shell.data(), how.environment.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(how.report, &why, sizeof why);
  ::_exit(127);
}

}  // namespace

tl::expected<child, int> child::start(const child_plan& plan, const signal_inbox& inbox,
                                      terminal& terminal) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno);
  const runtime::descriptor reading(ends[0]);
  runtime::descriptor writing(ends[1]);

  launch how{.program = plan.program.c_str(),
             .arguments = pointers(plan.arguments),
             .shell = {},
             .environment = pointers(plan.environment),
             .descriptors = plan.descriptors,
             .report = writing.get(),
             .parent = ::getpid(),
             .terminal_at_start = terminal.to_be_given_at_start()};
  static char shell_name[] = "sh";
  how.shell = how.arguments;
  how.shell[0] = const_cast<char*>(how.program);
  how.shell.insert(how.shell.begin(), shell_name);

  const pid_t pid = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid < 0) return tl::unexpected(errno);
  if (pid == 0) become(how, inbox, terminal);
  // On both sides, whichever comes first. Fails harmlessly once the child has become another
  // program.
  ::setpgid(pid, pid);
  if (how.terminal_at_start) terminal.give(pid);
  writing.close();
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(reading.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof why) {
    ::waitpid(pid, nullptr, 0);
    terminal.take_back(pid);
    return tl::unexpected(why);
  }
  return child(pid);
}

void child::signal_group(int number) const noexcept { ::kill(-pid_, number); }

void child::signal_leader(int number) const noexcept { ::kill(pid_, number); }

int child::stopped_by() const noexcept {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) != 0) return 0;
  return info.si_pid == pid_ && info.si_code == CLD_STOPPED ? info.si_status : 0;
}

bool child::ended() const noexcept {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

bool child::alone() const {
  namespace fs = std::filesystem;
  std::error_code problem;
  fs::directory_iterator processes("/proc", problem);
  if (problem) return false;
  for (const auto& entry : processes) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, trouble] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (trouble != std::errc{} || end != name.data() + name.size() || pid == pid_) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    // "17 (any) name) S 1 42 ...": state, parent, group
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t group = 0;
    fields >> state >> parent >> group;
    if (group == pid_ && state != 'Z' && state != 'X') return false;
  }
  return true;
}

child::ending child::reap() const noexcept {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

namespace {

// 0, or why it cannot be executed.
int trouble_with(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode)) return EACCES;
  // AT_EACCESS: exec checks the effective user.
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
