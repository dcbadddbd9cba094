#include "cli/guard.hpp"

#include "cli/arguments.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace holdfast::cli {

namespace {

// How often to look whether a group that was told to end is gone: no event tells it.
constexpr duration group_check = std::chrono::milliseconds(20);

// What by custom ends or reloads goes to the whole group, as the terminal sends it: else a shell
// would die and leave its children behind, without the lock. The user's own signals mean what the
// command itself says they mean.
bool goes_to_group(int number) { return number != SIGUSR1 && number != SIGUSR2; }

bool is_job_control(int number) {
  return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

}  // namespace

guard::guard(child& command, const command_lease& held, duration grace, signal_inbox& inbox,
             terminal& terminal)
    : child_(command),
      lease_(held),
      grace_(grace),
      inbox_(inbox),
      terminal_(terminal),
      lost_(held.lost()),
      lost_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!lost_event_) throw std::system_error(errno, std::system_category(), "eventfd");
}

guard::verdict guard::watch() {
  const std::stop_callback ring(lost_, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(lost_event_.get(), &one, sizeof one);
  });
  for (;;) {
    // In this order: what was lost before the command ended was lost, whatever it answers.
    check_lease();
    if (child_.ended() && (!kill_at_ || killed_ || child_.alone())) break;
    wait_for_something(next_step());
    read_signals();
  }
  verdict result{.lost = kill_at_.has_value(), .killed = killed_, .ending = child_.reap()};
  terminal_.take_back(child_.group());
  if (result.ending.signal != 0) terminal_.restore_modes();
  return result;
}

void guard::check_lease() {
  const time_point now = clock::now();
  const time_point end = lease_.valid_until();
  if (end != time_point::min()) valid_until_ = end;
  if (!kill_at_) {
    const duration ttl = lease_.ttl();
    // The library's own rule: an offer is shorter than the lease that was asked for.
    const duration notice = std::min(std::max(grace_, kill_margin(ttl)), ttl / 2);
    const bool over = valid_until_ != time_point::max() && now >= valid_until_ - notice;
    if (!over && !lost_.stop_requested()) return;
    child_.signal_group(SIGTERM);
    child_.signal_group(SIGCONT);  // a stopped one could not obey
    kill_at_ = valid_until_ == time_point::max()
                   ? now + grace_
                   : std::min(now + grace_, valid_until_ - kill_margin(ttl));
  }
  if (!killed_ && now >= *kill_at_) kill_group();
}

void guard::kill_group() noexcept {
  child_.signal_group(SIGKILL);
  killed_ = true;
}

time_point guard::next_step() const {
  if (killed_) return time_point::max();  // SIGCHLD comes
  const time_point now = clock::now();
  if (kill_at_) return child_.ended() ? std::min(*kill_at_, now + group_check) : *kill_at_;
  if (valid_until_ == time_point::max()) return time_point::max();
  const duration ttl = lease_.ttl();
  return valid_until_ - std::min(std::max(grace_, kill_margin(ttl)), ttl / 2);
}

void guard::wait_for_something(time_point until) {
  alarm_.set(until);
  std::array<pollfd, 3> files{
      {{inbox_.get(), POLLIN, 0}, {alarm_.get(), POLLIN, 0}, {lost_event_.get(), POLLIN, 0}}};
  // The event comes once; afterwards only time and signals matter.
  const nfds_t count = kill_at_ ? 2 : 3;
  ::poll(files.data(), count, -1);
}

void guard::read_signals() {
  while (const auto message = inbox_.take()) {
    if (message->number == SIGCHLD) {
      reap_orphans(child_.group());
      if (const int number = child_.stopped_by(); number != 0) follow_stop(number);
    } else if (message->number != SIGCONT) {
      pass_on(*message);
    }
  }
}

void guard::pass_on(const signal_inbox::message& message) {
  // A shell tells its jobs that the terminal hung up, and ends; at its end the kernel tells the
  // group that had the terminal. Only where we lead the session are we the only ones who are told.
  const bool echo = message.number == SIGHUP && terminal_.given() && terminal_.hung_up() &&
                    message.sender != 0 && message.sender == ::getsid(0);
  if (echo) return;
  if (goes_to_group(message.number)) {
    child_.signal_group(message.number);
  } else {
    child_.signal_leader(message.number);
  }
}

// Job control: if the command is stopped at the terminal, so are we, or the user's shell would wait
// for us. Leases are not renewed meanwhile; what was lost is found when we go on, before the
// command does.
void guard::follow_stop(int number) {
  if (!is_job_control(number) || !terminal_.exists() || kill_at_) return;
  const bool asks_for_terminal = number != SIGTSTP;
  if (!asks_for_terminal || !terminal_.ours()) {
    terminal_.take_back(child_.group());
    const bool stood_still = signal_inbox::stop_with_pipeline();
    // As the kernel does with a stopped group that nobody can continue: it would ask forever.
    if (!stood_still && asks_for_terminal) child_.signal_group(SIGHUP);
  }
  check_lease();
  if (kill_at_) return;  // told to end, and continued for that
  if (terminal_.ours()) terminal_.give(child_.group());
  child_.signal_group(SIGCONT);
}

void guard::linger(time_point until) {
  const std::stop_callback ring(lost_, [this] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(lost_event_.get(), &one, sizeof one);
  });
  while (!end_asked_ && !lost_.stop_requested() && clock::now() < until) {
    wait_for_something(until);
    while (const auto message = inbox_.take()) {
      if (message->number == SIGCHLD) reap_orphans();
      if (inbox_.ends_wait(message->number)) end_asked_ = true;
    }
  }
}

}  // namespace holdfast::cli
