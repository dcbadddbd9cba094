// System calls that fail: loaded into a process before anything else (LD_PRELOAD), it makes the
// n-th call of one kind fail, once or from then on, as HOLDFAST_FAULT says: KIND:N:ERROR:once or
// KIND:N:ERROR:on, the error as a number. Calls are counted from holdfast_faults_arm() on, so that
// what the loader and libraries do before main() is unaffected; with ":armed" at the end, from the
// start.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdlib>
#include <string_view>

namespace {

struct plan {
  std::string_view kind;
  int first = 0;
  int problem = 0;
  bool once = true;
};

plan what;
std::atomic<bool> armed{false};
std::atomic<int> calls{0};
std::atomic<int> struck{0};

// Once, by the loader, before any thread. Programs that this one starts are not affected.
__attribute__((constructor)) void read_plan() {
  const char* text = std::getenv("HOLDFAST_FAULT");
  if (text == nullptr) return;
  std::string_view rest = text;
  const auto word = [&rest] {
    const std::string_view found = rest.substr(0, rest.find(':'));
    rest.remove_prefix(found.size() < rest.size() ? found.size() + 1 : rest.size());
    return found;
  };
  const auto number = [](std::string_view digits) {
    int value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  what.kind = word();
  what.first = number(word());
  what.problem = number(word());
  what.once = word() == "once";
  armed = word() == "armed";
  ::unsetenv("LD_PRELOAD");
}

bool fails(std::string_view kind) noexcept {
  if (!armed || kind != what.kind) return false;
  const int call = ++calls;
  if (what.once ? call != what.first : call < what.first) return false;
  ++struck;
  errno = what.problem;
  return true;
}

// Calls that create a descriptor are also counted together, since all of them fail when none is
// left.
bool fails_as_descriptor(std::string_view kind) noexcept {
  return fails(kind) || fails("descriptor");
}

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void holdfast_faults_arm() { armed = true; }
int holdfast_faults_struck() { return struck; }

int socket(int domain, int type, int protocol) noexcept {
  if (fails_as_descriptor("socket")) return -1;
  static auto* const call = next<int(int, int, int)>("socket");
  return call(domain, type, protocol);
}

int connect(int fd, const sockaddr* to, socklen_t size) {
  if (fails("connect")) return -1;
  static auto* const call = next<int(int, const sockaddr*, socklen_t)>("connect");
  return call(fd, to, size);
}

int bind(int fd, const sockaddr* to, socklen_t size) noexcept {
  if (fails("bind")) return -1;
  static auto* const call = next<int(int, const sockaddr*, socklen_t)>("bind");
  return call(fd, to, size);
}

int listen(int fd, int backlog) noexcept {
  if (fails("listen")) return -1;
  static auto* const call = next<int(int, int)>("listen");
  return call(fd, backlog);
}

int accept4(int fd, sockaddr* from, socklen_t* size, int flags) {
  if (fails_as_descriptor("accept4")) return -1;
  static auto* const call = next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  return call(fd, from, size, flags);
}

int accept(int fd, sockaddr* from, socklen_t* size) { return accept4(fd, from, size, 0); }

int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  if (fails("setsockopt")) return -1;
  static auto* const call = next<int(int, int, int, const void*, socklen_t)>("setsockopt");
  return call(fd, level, name, value, size);
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  if (fails("send")) return -1;
  static auto* const call = next<ssize_t(int, const void*, size_t, int)>("send");
  return call(fd, data, size, flags);
}

ssize_t recv(int fd, void* data, size_t size, int flags) {
  if (fails("recv")) return -1;
  static auto* const call = next<ssize_t(int, void*, size_t, int)>("recv");
  return call(fd, data, size, flags);
}

int epoll_create1(int flags) noexcept {
  if (fails_as_descriptor("epoll_create1")) return -1;
  static auto* const call = next<int(int)>("epoll_create1");
  return call(flags);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  // Removing something needs no resources.
  if (operation != EPOLL_CTL_DEL && fails("epoll_ctl")) return -1;
  static auto* const call = next<int(int, int, int, epoll_event*)>("epoll_ctl");
  return call(epoll, operation, fd, event);
}

int eventfd(unsigned int count, int flags) noexcept {
  if (fails_as_descriptor("eventfd")) return -1;
  static auto* const call = next<int(unsigned int, int)>("eventfd");
  return call(count, flags);
}

int timerfd_create(clockid_t clock, int flags) noexcept {
  if (fails_as_descriptor("timerfd_create")) return -1;
  static auto* const call = next<int(clockid_t, int)>("timerfd_create");
  return call(clock, flags);
}

int pipe2(int* ends, int flags) noexcept {
  if (fails_as_descriptor("pipe2")) return -1;
  static auto* const call = next<int(int*, int)>("pipe2");
  return call(ends, flags);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  if (fails("pthread_create")) return what.problem;
  static auto* const call =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return call(thread, attributes, body, argument);
}

// The mode argument may be absent; reading it then is harmless.
#define HOLDFAST_OPEN(name)                                            \
  int name(const char* path, int flags, ...) {                         \
    va_list rest;                                                      \
    va_start(rest, flags);                                             \
    const mode_t mode = va_arg(rest, mode_t);                          \
    va_end(rest);                                                      \
    if (fails_as_descriptor("open")) return -1;                        \
    static auto* const call = next<int(const char*, int, ...)>(#name); \
    return call(path, flags, mode);                                    \
  }
HOLDFAST_OPEN(open)
HOLDFAST_OPEN(open64)
#undef HOLDFAST_OPEN

#define HOLDFAST_OPENAT(name)                                               \
  int name(int folder, const char* path, int flags, ...) {                  \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    const mode_t mode = va_arg(rest, mode_t);                               \
    va_end(rest);                                                           \
    if (fails_as_descriptor("open")) return -1;                             \
    static auto* const call = next<int(int, const char*, int, ...)>(#name); \
    return call(folder, path, flags, mode);                                 \
  }
HOLDFAST_OPENAT(openat)
HOLDFAST_OPENAT(openat64)
#undef HOLDFAST_OPENAT

#define HOLDFAST_FCNTL(name)                                             \
  int name(int fd, int command, ...) {                                   \
    va_list rest;                                                        \
    va_start(rest, command);                                             \
    void* const argument = va_arg(rest, void*);                          \
    va_end(rest);                                                        \
    const bool makes = command == F_DUPFD || command == F_DUPFD_CLOEXEC; \
    if (fails("fcntl") || (makes && fails("descriptor"))) return -1;     \
    static auto* const call = next<int(int, int, ...)>(#name);           \
    return call(fd, command, argument);                                  \
  }
HOLDFAST_FCNTL(fcntl)
HOLDFAST_FCNTL(fcntl64)
#undef HOLDFAST_FCNTL

}  // extern "C"
