#include "cli/bench/crew.hpp"

#include "cli/descriptor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr duration patience_to_start = std::chrono::minutes(1);
// After the end those who wait are served one by one, and then the figures are sent.
constexpr duration patience_for_results = std::chrono::minutes(2);
constexpr duration patience_to_leave = std::chrono::seconds(5);
constexpr duration step = std::chrono::milliseconds(100);

constexpr const char* this_program = "/proc/self/exe";

std::pair<descriptor, descriptor> make_line() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::system_category(), "socketpair");
  }
  return {descriptor(ends[0]), descriptor(ends[1])};
}

// Between fork() and exec(): the socket becomes 0 and 1, the relay 3, and nothing else stays.
[[noreturn]] void become_worker(int line, int relay) noexcept {
  // Out of the way of the numbers that they are to have.
  const int first_free = 10;
  line = ::fcntl(line, F_DUPFD, first_free);
  relay = ::fcntl(relay, F_DUPFD, first_free);
  if (::dup2(line, STDIN_FILENO) < 0 || ::dup2(line, STDOUT_FILENO) < 0 ||
      ::dup2(relay, relay_file) < 0) {
    ::_exit(exit_code::engine);
  }
  ::close_range(relay_file + 1, ~0U, 0);
  ::execl(this_program, "holdfast", "bench", "worker", static_cast<char*>(nullptr));
  ::_exit(exit_code::engine);
}

}  // namespace

crew::crew(const worker_plan& plan, signal_inbox& inbox)
    : inbox_(inbox), relay_(locks_of(plan.how)) {
  worker_plan each = plan;
  try {
    for (std::uint32_t i = 0; i < plan.how.processes; ++i) {
      start_one(each);
      each.first += plan.how.threads;
    }
  } catch (...) {
    end();
    throw;
  }
}

crew::~crew() { end(); }

void crew::start_one(const worker_plan& plan) {
  auto [ours, theirs] = make_line();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::system_category(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(exit_code::engine);
    inbox_.restore();
    become_worker(theirs.get(), relay_.file());
  }
  const int file = ours.get();
  members_.push_back({.pid = pid, .line = std::move(ours), .lines = line_reader(file)});
  if (!write_all(file, to_line(plan))) trouble_ = {exit_code::engine, "a process did not start"};
}

void crew::hear(member& one) {
  const bool more = one.lines.fill();
  while (const auto line = one.lines.next()) {
    auto message = read_message(*line);
    if (!message) {
      trouble_ = {exit_code::engine, "a process of another version answered"};
      return;
    }
    one.ready = one.ready || message->ready;
    if (message->trouble && !trouble_) trouble_ = std::move(message->trouble);
    if (message->result) one.result = std::move(message->result);
  }
  if (!more && !one.result && !trouble_) {
    trouble_ = {exit_code::engine, "a process of the measurement ended early"};
  }
}

void crew::read_signals() {
  while (const auto message = inbox_.take()) {
    if (signal_inbox::is_forwarded(message->number) && !inbox_.was_ignored(message->number)) {
      ended_by_ = message->number;
    }
    if (message->number == SIGTSTP) ::kill(::getpid(), SIGSTOP);
  }
}

void crew::listen(const std::function<bool()>& done, time_point until) {
  alarm_clock alarm;
  alarm.set(until);
  while (fine() && !done() && clock::now() < until) {
    std::vector<pollfd> files{{inbox_.get(), POLLIN, 0}, {alarm.get(), POLLIN, 0}};
    for (const member& one : members_) {
      // Who has answered closes its end, and that is no news.
      files.push_back({one.result ? -1 : one.line.get(), POLLIN, 0});
    }
    if (::poll(files.data(), files.size(), -1) < 0) continue;
    if (files[0].revents != 0) read_signals();
    for (std::size_t i = 0; i < members_.size() && fine(); ++i) {
      if (files[i + 2].revents != 0) hear(members_[i]);
    }
  }
}

bool crew::get_ready() {
  const auto all_ready = [this] {
    return std::all_of(members_.begin(), members_.end(), [](const auto& one) { return one.ready; });
  };
  listen(all_ready, clock::now() + patience_to_start);
  if (fine() && !all_ready()) {
    trouble_ = {exit_code::engine, "the processes of the measurement did not get ready in time"};
  }
  return fine();
}

void crew::start(time_point when) {
  for (const member& one : members_) write_all(one.line.get(), start_line(when));
}

bool crew::wait_until(time_point when, const std::function<void()>& tick) {
  while (fine() && clock::now() < when) {
    tick();
    listen([] { return false; }, std::min(when, clock::now() + step));
  }
  return fine();
}

std::vector<worker_result> crew::take() {
  const auto all_here = [this] {
    return std::all_of(members_.begin(), members_.end(),
                       [](const auto& one) { return one.result.has_value(); });
  };
  listen(all_here, clock::now() + patience_for_results);
  if (fine() && !all_here()) {
    trouble_ = {exit_code::engine, "the processes of the measurement did not end in time"};
  }
  std::vector<worker_result> results;
  if (!fine()) return results;
  for (member& one : members_) results.push_back(std::move(*one.result));
  return results;
}

void crew::end() noexcept {
  for (member& one : members_) one.line.close();
  const time_point limit = clock::now() + patience_to_leave;
  for (const member& one : members_) {
    while (::waitpid(one.pid, nullptr, WNOHANG) == 0) {
      if (clock::now() > limit) ::kill(one.pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  members_.clear();
}

}  // namespace holdfast::cli
