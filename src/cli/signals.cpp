#include "cli/signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>

namespace holdfast::cli {

namespace {

constexpr std::array forwarded{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t read_ones() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : forwarded) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGCHLD);
  ::sigaddset(&set, SIGTSTP);  // so that we are not stopped while the child runs on unguarded
  ::sigaddset(&set, SIGCONT);  // only to learn that we were stopped
  return set;
}

}  // namespace

signal_inbox::signal_inbox() {
  ::sigemptyset(&ignored_);
  for (const int number : forwarded) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) ::sigaddset(&ignored_, number);
  }
  // If SIGCHLD were ignored, children would be gone before their exit status can be read.
  ::signal(SIGCHLD, SIG_DFL);
  // A closed stderr must not end us, and with us the child.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &former_pipe_);
  // Nor must a file that may not grow (ulimit -f): the write fails, and that is reported.
  ::sigaction(SIGXFSZ, &ignore, &former_size_);

  const sigset_t set = read_ones();
  sigset_t blocked = set;
  ::sigaddset(&blocked, SIGTTOU);  // giving the terminal away would stop us
  ::pthread_sigmask(SIG_BLOCK, &blocked, &former_);
  file_ = runtime::checked(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

std::optional<signal_inbox::message> signal_inbox::take() noexcept {
  signalfd_siginfo info{};
  if (::read(file_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return message{static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid)};
}

std::optional<int> signal_inbox::take_end() noexcept {
  while (const auto next = take()) {
    if (next->number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
    if (ends_wait(next->number)) return next->number;
  }
  return std::nullopt;
}

int signal_inbox::wait_for_end(duration beat, const std::function<void()>& on_beat) {
  const auto wanted = std::chrono::ceil<std::chrono::milliseconds>(beat).count();
  const int pause =
      beat == forever ? -1 : static_cast<int>(std::min<std::int64_t>(wanted, INT_MAX));
  for (;;) {
    pollfd file{get(), POLLIN, 0};
    if (::poll(&file, 1, pause) == 0) on_beat();
    if (const auto number = take_end()) return *number;
  }
}

bool signal_inbox::ends_wait(int number) const noexcept {
  return std::find(forwarded.begin(), forwarded.end(), number) != forwarded.end() &&
         ::sigismember(&ignored_, number) == 0;
}

bool signal_inbox::stop_with_pipeline() noexcept {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  sigset_t go;
  ::sigemptyset(&go);
  ::sigaddset(&go, SIGCONT);
  const timespec at_once{};
  ::sigtimedwait(&go, nullptr, &at_once);  // an old one
  ::kill(0, SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  // Here we are stopped.
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  return ::sigtimedwait(&go, nullptr, &at_once) == SIGCONT;
}

void signal_inbox::restore() const noexcept {
  ::sigaction(SIGPIPE, &former_pipe_, nullptr);
  ::sigaction(SIGXFSZ, &former_size_, nullptr);
  ::sigprocmask(SIG_SETMASK, &former_, nullptr);
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(number);
}

void reap_orphans(pid_t watched) noexcept {
  if (::getpid() != 1) return;
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 ||
        info.si_pid == watched) {
      return;
    }
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

complaint ended_by_signal(int signal, const std::string& before, const std::string& after) {
  return {exit_code::signalled + signal, before + "ended by " + signal_name(signal) + after};
}

interruption::interruption(signal_inbox& inbox)
    : inbox_(inbox),
      quit_(runtime::checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      reader_([this] { read(); }) {}

interruption::~interruption() {
  if (reader_.joinable()) over();
}

std::stop_token interruption::waiting() noexcept {
  waiting_.store(true);
  return stop_.get_token();
}

std::optional<int> interruption::over() noexcept {
  ::eventfd_write(quit_.get(), 1);  // cannot fail: it takes 2^64 - 2 of these
  reader_.join();
  const int seen = seen_.load();
  return seen != 0 ? std::optional(seen) : std::nullopt;
}

void interruption::read() {
  std::array<pollfd, 2> files{{{inbox_.get(), POLLIN, 0}, {quit_.get(), POLLIN, 0}}};
  for (;;) {
    if (::poll(files.data(), files.size(), -1) < 0) continue;
    if (files[1].revents != 0) return;
    if (const auto number = inbox_.take_end()) end_wait(*number);
    reap_orphans();
  }
}

void interruption::end_wait(int number) {
  int none = 0;
  seen_.compare_exchange_strong(none, number);
  if (!waiting_.load()) {
    ::_exit(tell(ended_by_signal(number, {}, " before anything was asked for")));
  }
  stop_.request_stop();
}

}  // namespace holdfast::cli
