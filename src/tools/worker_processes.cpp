#include "tools/worker_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <string>
#include <thread>

namespace holdfast::cli {

namespace {

constexpr duration between_ticks = std::chrono::milliseconds(100);

timespec timespec_of(duration span) noexcept {
  span = std::max(span, duration{0});
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {whole.count(), (span - whole).count()};
}

}  // namespace

worker_processes::closing_pipe::closing_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::system_category(), "pipe");
  }
  reading = runtime::descriptor(ends[0]);
  writing = runtime::descriptor(ends[1]);
}

worker_processes::worker_processes(signal_inbox& inbox, duration leave_within)
    : inbox_(inbox), leave_within_(leave_within) {}

void worker_processes::fork_all(std::uint32_t count, const work& each) {
  const pid_t parent = ::getpid();
  for (std::uint32_t number = 0; number < count; ++number) {
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(exit_code::engine);
      inbox_.restore();
      become_worker(number, each);
    }
    pids_.push_back(pid);
  }
  ready_.writing.close();
}

void worker_processes::become_worker(std::uint32_t number, const work& each) noexcept {
  ready_.reading.close();
  start_.writing.close();
  give_up_.writing.close();
  try {
    const auto done = each(number);
    if (done) ::_exit(exit_code::ok);
    complain(done.error());
  } catch (const std::exception& problem) {
    complain({exit_code::engine, std::string("out of resources (system, ") + problem.what() + ")"});
  }
  ::_exit(exit_code::engine);
}

void worker_processes::complain(const complaint& what) const noexcept {
  shared_trouble& into = told_[0];
  if (into.taken.exchange(true)) return;
  into.code = what.code;
  std::memcpy(into.text.data(), what.text.data(), std::min(what.text.size(), into.text.size() - 1));
  into.written.store(true);
}

bool worker_processes::wait_for_start() noexcept {
  ready_.writing.close();
  char none = 0;
  while (::read(start_.reading.get(), &none, 1) < 0 && errno == EINTR) {
  }
  return !given_up();
}

bool worker_processes::given_up(duration within) const noexcept {
  pollfd closed{give_up_.reading.get(), POLLIN, 0};
  const timespec limit = timespec_of(within);
  return ::ppoll(&closed, 1, &limit, nullptr) > 0;
}

// Collects the workers that have ended.
void worker_processes::collect() {
  bool failed = false;
  std::erase_if(pids_, [&](pid_t pid) {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) != pid) return false;
    failed = failed || status != 0;
    return true;
  });
  if (trouble_) return;
  if (const shared_trouble& told = told_[0]; told.written.load()) {
    trouble_ = {told.code, told.text.data()};
  } else if (failed) {
    trouble_ = {exit_code::engine, "a process ended early"};
  }
}

bool worker_processes::wait(const std::function<bool()>& done, time_point until,
                            const std::function<void()>& tick) {
  for (;;) {
    if (!ended_by_)
      ended_by_ = inbox_.take_end();  // first: a worker that ends later wakes us again
    collect();
    if (trouble_ || ended_by_) return false;
    const time_point now = clock::now();
    if (done() || now >= until) return true;
    if (tick) tick();
    std::array<pollfd, 2> files{{{inbox_.get(), POLLIN, 0}, {ready_.reading.get(), POLLIN, 0}}};
    const timespec limit = timespec_of(std::min(until - now, between_ticks));
    ::ppoll(files.data(), files.size(), &limit, nullptr);
  }
}

bool worker_processes::wait_until_ready(duration limit) {
  const auto ready = [this] {
    pollfd closed{ready_.reading.get(), POLLIN, 0};
    return ::poll(&closed, 1, 0) > 0;
  };
  if (!wait(ready, clock::now() + limit, {})) return false;
  if (!ready()) trouble_ = {exit_code::engine, "the processes did not get ready in time"};
  ready_.reading.close();
  return !trouble_;
}

void worker_processes::start() noexcept { start_.writing.close(); }

bool worker_processes::wait_until(time_point when, const std::function<void()>& tick) {
  return wait([this] { return all_ended(); }, when, tick);
}

void worker_processes::end() noexcept {
  give_up_.writing.close();
  start_.writing.close();
  const time_point limit = clock::now() + leave_within_;
  for (const pid_t pid : pids_) {
    while (::waitpid(pid, nullptr, WNOHANG) == 0) {
      if (clock::now() >= limit) ::kill(pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  pids_.clear();
}

}  // namespace holdfast::cli
