// What a torture does to a client from inside: loaded into it before anything else (LD_PRELOAD), it
// does what the page in the file named by HOLDFAST_CLOCK says. The wall clock of this one process
// is shifted (other clocks are left alone), and its n-th communicating system call stops or kills
// it, before or after the call. Nothing on the machine is changed.
#include "clock/client_page.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr std::int64_t billion = 1'000'000'000;

// null: nothing was requested.
holdfast::torture::client_page* page = nullptr;

// Once, by the loader, before any thread.
__attribute__((constructor)) void find_page() {
  const char* path = std::getenv("HOLDFAST_CLOCK");
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void* memory = ::mmap(nullptr, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory != MAP_FAILED) page = static_cast<holdfast::torture::client_page*>(memory);
}

int read_clock(clockid_t which, timespec* into) {
  const auto answer = static_cast<int>(::syscall(SYS_clock_gettime, which, into));
  const bool wall = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE;
  if (answer != 0 || !wall || page == nullptr) return answer;
  const std::int64_t all = into->tv_sec * billion + into->tv_nsec + page->shift.load();
  into->tv_sec = all / billion;
  into->tv_nsec = all % billion;
  return 0;
}

// One step of the countdown; at its end the signal. Errors of the call around it are kept.
void count_down() noexcept {
  if (page == nullptr) return;
  std::int64_t left = page->countdown.load(std::memory_order_relaxed);
  while (left > 0 && !page->countdown.compare_exchange_weak(left, left - 1)) {
  }
  if (left != 1) return;
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  page->struck_at.store(now.tv_sec * billion + now.tv_nsec);
  const int before = errno;
  ::kill(::getpid(), static_cast<int>(page->signal.load()));
  errno = before;
}

// Counts twice: a request that was sent and one that was not are different places to die.
template <class Call, class... Arguments>
auto counted(Call* call, Arguments... arguments) {
  count_down();
  const auto answer = call(arguments...);
  count_down();
  return answer;
}

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t which, timespec* into) noexcept { return read_clock(which, into); }

int gettimeofday(timeval* into, void* zone) noexcept {
  static_cast<void>(zone);
  timespec now{};
  const int answer = read_clock(CLOCK_REALTIME, &now);
  *into = {now.tv_sec, now.tv_nsec / 1000};
  return answer;
}

time_t time(time_t* into) noexcept {
  timespec now{};
  read_clock(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

// clang-format off
#define HOLDFAST_COUNTED(type, name, parameters, arguments)       \
  type name parameters {                                          \
    static auto* const call = next<type parameters>(#name);       \
    return counted arguments;                                     \
  }
HOLDFAST_COUNTED(ssize_t, send, (int fd, const void* data, size_t size, int flags), (call, fd, data, size, flags))
HOLDFAST_COUNTED(ssize_t, sendmsg, (int fd, const msghdr* what, int flags), (call, fd, what, flags))
HOLDFAST_COUNTED(ssize_t, recv, (int fd, void* data, size_t size, int flags), (call, fd, data, size, flags))
HOLDFAST_COUNTED(ssize_t, recvmsg, (int fd, msghdr* what, int flags), (call, fd, what, flags))
HOLDFAST_COUNTED(ssize_t, read, (int fd, void* data, size_t size), (call, fd, data, size))
HOLDFAST_COUNTED(ssize_t, write, (int fd, const void* data, size_t size), (call, fd, data, size))
HOLDFAST_COUNTED(ssize_t, writev, (int fd, const iovec* parts, int count), (call, fd, parts, count))
HOLDFAST_COUNTED(ssize_t, pread64, (int fd, void* data, size_t size, off64_t at), (call, fd, data, size, at))
HOLDFAST_COUNTED(ssize_t, pwrite64, (int fd, const void* data, size_t size, off64_t at), (call, fd, data, size, at))
HOLDFAST_COUNTED(int, connect, (int fd, const sockaddr* to, socklen_t size), (call, fd, to, size))
HOLDFAST_COUNTED(int, poll, (pollfd* those, nfds_t count, int limit), (call, those, count, limit))
HOLDFAST_COUNTED(int, epoll_wait, (int fd, epoll_event* into, int size, int limit), (call, fd, into, size, limit))
HOLDFAST_COUNTED(int, fdatasync, (int fd), (call, fd))
HOLDFAST_COUNTED(int, fsync, (int fd), (call, fd))
#undef HOLDFAST_COUNTED
// clang-format on

}  // extern "C"
