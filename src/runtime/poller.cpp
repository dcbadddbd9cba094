// epoll, eventfd, timerfd; see the header.
#include "runtime/poller.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace holdfast::runtime {

namespace {

constexpr std::uint64_t wake_event_id = 1;
constexpr std::uint64_t alarm_id = 2;

void control(int epoll, int operation, int fd, std::uint32_t events, std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, operation, fd, &event) != 0) {
    throw std::system_error(errno, std::system_category(), "epoll_ctl");
  }
}

std::uint32_t interest(bool readable, bool writable) noexcept {
  return (readable ? std::uint32_t{EPOLLIN} : 0U) | (writable ? std::uint32_t{EPOLLOUT} : 0U);
}

timespec to_timespec(duration time) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  timespec converted{};
  converted.tv_sec = seconds.count();
  converted.tv_nsec = (time - seconds).count();
  return converted;
}

void add_one(int eventfd) noexcept {
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then it is signalled already.
  [[maybe_unused]] const ssize_t written = ::write(eventfd, &one, sizeof one);
}

}  // namespace

poller::poller()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      alarm_(
          checked(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")),
      wake_event_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      engine_wake_event_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  // Edge-triggered, so that nobody has to drain them: saves two system calls per wake-up.
  control(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), EPOLLIN | std::uint32_t{EPOLLET},
          wake_event_id);
  control(epoll_.get(), EPOLL_CTL_ADD, alarm_.get(), EPOLLIN | std::uint32_t{EPOLLET}, alarm_id);
}

void poller::add(int fd, std::uint64_t id, bool readable, bool writable) {
  control(epoll_.get(), EPOLL_CTL_ADD, fd, interest(readable, writable), id);
}

void poller::change(int fd, std::uint64_t id, bool readable, bool writable) {
  control(epoll_.get(), EPOLL_CTL_MOD, fd, interest(readable, writable), id);
}

void poller::remove(int fd) noexcept {
  // Fails only if the caller has already closed it.
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, &unused);
}

void poller::wait(patience limit, ready_batch& batch) noexcept {
  const int timeout = limit == patience::none ? 0 : -1;
  const int count = ::epoll_wait(epoll_.get(), batch.events.data(), ready_batch::limit, timeout);
  batch.count = static_cast<std::size_t>(std::max(count, 0));
  batch.alarm = std::ranges::any_of(
      batch.view(), [](const epoll_event& event) { return event.data.u64 == alarm_id; });
}

void poller::wait_as_engine() noexcept {
  // An epoll instance is readable while it has something to report.
  std::array<pollfd, 2> either{pollfd{epoll_.get(), POLLIN, 0},
                               pollfd{engine_wake_event_.get(), POLLIN, 0}};
  if (::poll(either.data(), either.size(), -1) > 0 && either[1].revents != 0) silence_engine();
}

void poller::wait_for_engine_wake(std::optional<duration> limit) noexcept {
  pollfd event{engine_wake_event_.get(), POLLIN, 0};
  const timespec timeout = to_timespec(std::max(limit.value_or(duration{0}), duration{0}));
  if (::ppoll(&event, 1, limit ? &timeout : nullptr, nullptr) > 0) silence_engine();
}

void poller::wake() noexcept { add_one(wake_event_.get()); }
void poller::wake_engine() noexcept { add_one(engine_wake_event_.get()); }

void poller::silence_engine() noexcept {
  std::uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t taken = ::read(engine_wake_event_.get(), &wakes, sizeof wakes);
}

void poller::set_alarm(time_point when) noexcept {
  itimerspec setting{};
  // Zero would mean never; a time in the past goes off at once.
  setting.it_value = to_timespec(std::max(when.time_since_epoch(), duration{1}));
  ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

void poller::close() noexcept {
  epoll_.close();
  alarm_.close();
  wake_event_.close();
  engine_wake_event_.close();
}

}  // namespace holdfast::runtime
