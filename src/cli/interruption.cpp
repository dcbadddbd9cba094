#include "cli/interruption.hpp"

#include "cli/child.hpp"
#include "cli/complaint.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace holdfast::cli {

interruption::interruption(signal_inbox& inbox)
    : inbox_(inbox), quit_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!quit_) throw std::system_error(errno, std::system_category(), "eventfd");
  reader_ = std::jthread([this] { read(); });
}

interruption::~interruption() {
  if (reader_.joinable()) over();
}

std::stop_token interruption::waiting() noexcept {
  waiting_.store(true);
  return stop_.get_token();
}

std::optional<int> interruption::over() noexcept {
  const std::uint64_t one = 1;
  // Cannot fail: an eventfd takes 2^64 - 2 of these.
  [[maybe_unused]] const ssize_t written = ::write(quit_.get(), &one, sizeof one);
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
    tell("ended by " + signal_name(number) + " before anything was asked for");
    ::_exit(exit_code::signalled + number);
  }
  stop_.request_stop();
}

}  // namespace holdfast::cli
