#include "cli/run/guard.hpp"

#include "cli/arguments.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace holdfast::cli {

std::vector<const lease*> command_lease::leases() const {
  if (const auto* one = std::get_if<lease>(&held_)) return {one};
  std::vector<const lease*> all;
  for (const lease& each : std::get<multi_lease>(held_).leases()) all.push_back(&each);
  return all;
}

time_point command_lease::valid_until() const noexcept {
  return std::visit([](const auto& held) { return held.valid_until(); }, held_);
}

duration command_lease::ttl() const noexcept {
  duration shortest = forever;
  for (const lease* each : leases()) shortest = std::min(shortest, each->ttl());
  return shortest;
}

std::stop_token command_lease::lost() const {
  return std::visit([](const auto& held) { return held.lost(); }, held_);
}

fence_token command_lease::fence() const noexcept { return leases().front()->fence(); }

result<void> command_lease::release() {
  return std::visit([](auto& held) { return held.release(); }, held_);
}

std::vector<std::string> command_lease::variables() const {
  std::string names;
  std::string fences;
  std::string claims;
  const char* between = "";
  for (const lease* each : leases()) {
    names += between + each->name();
    fences += between + std::to_string(each->fence().value());
    claims += between + each->claim();
    between = "\n";
  }
  return {"HOLDFAST_NAME=" + names, "HOLDFAST_FENCE=" + fences, "HOLDFAST_CLAIM=" + claims};
}

namespace {

// How often to check whether a group that was told to end is gone: no event reports it.
constexpr duration group_check = std::chrono::milliseconds(20);

// Signals that usually end or reload a program go to the whole group, as from a terminal: else a
// shell would die and leave its children behind, without the lock. The user-defined signals mean
// whatever the command itself says they mean.
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
      alarm_(runtime::checked(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                              "timerfd_create")),
      lost_event_(runtime::checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {}

void guard::notice_loss() const noexcept { ::eventfd_write(lost_event_.get(), 1); }

guard::verdict guard::watch() {
  const std::stop_callback ring(lost_, [this] { notice_loss(); });
  for (;;) {
    // In this order: what was lost before the command ended was lost, whatever its exit code.
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
    const bool over = now >= notice_begins();
    if (!over && !lost_.stop_requested()) return;
    child_.signal_group(SIGTERM);
    child_.signal_group(SIGCONT);  // a stopped one could not obey
    kill_at_ = valid_until_ == time_point::max()
                   ? now + grace_
                   : std::min(now + grace_, valid_until_ - kill_margin(ttl));
  }
  if (!killed_ && now >= *kill_at_) kill_group();
}

time_point guard::notice_begins() const {
  if (valid_until_ == time_point::max()) return valid_until_;
  const duration ttl = lease_.ttl();
  // The library's own rule: an offer is shorter than the lease that was asked for.
  return valid_until_ - std::min(std::max(grace_, kill_margin(ttl)), ttl / 2);
}

void guard::kill_group() noexcept {
  child_.signal_group(SIGKILL);
  killed_ = true;
}

time_point guard::next_step() const {
  if (killed_) return time_point::max();  // SIGCHLD comes
  const time_point now = clock::now();
  if (kill_at_) return child_.ended() ? std::min(*kill_at_, now + group_check) : *kill_at_;
  return notice_begins();
}

void guard::wait_for_something(time_point until) noexcept {
  itimerspec alarm{};  // all zero: off
  if (until != time_point::max()) {
    const auto since = std::max<duration::rep>(1, until.time_since_epoch().count());
    alarm.it_value = {static_cast<time_t>(since / std::nano::den),
                      static_cast<long>(since % std::nano::den)};
  }
  ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
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
  // A shell tells its jobs that the terminal hung up, and ends; then the kernel tells the group
  // that had the terminal. Only if we lead the session are we the only ones notified.
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
    child_.signal_group(SIGSTOP);  // those too that ignore the other: nobody renews meanwhile
    const bool stood_still = signal_inbox::stop_with_pipeline();
    // What the kernel does to a stopped group that nobody can continue: it would ask forever.
    if (!stood_still && asks_for_terminal) child_.signal_group(SIGHUP);
  }
  check_lease();
  if (kill_at_) return;  // told to end, and continued for that
  if (terminal_.ours()) terminal_.give(child_.group());
  child_.signal_group(SIGCONT);
}

void guard::linger(time_point until) {
  const std::stop_callback ring(lost_, [this] { notice_loss(); });
  while (!end_asked_ && !lost_.stop_requested() && clock::now() < until) {
    wait_for_something(until);
    while (const auto message = inbox_.take()) {
      if (message->number == SIGCHLD) reap_orphans();
      if (inbox_.ends_wait(message->number)) end_asked_ = true;
    }
  }
}

}  // namespace holdfast::cli
