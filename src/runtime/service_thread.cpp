#include "runtime/service_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace holdfast::runtime {

namespace {

// While it lives, threads made by the calling thread start with all signals blocked: if they were
// blocked later, a signal could still be delivered in between.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::unique_ptr<std::jthread> start_service(const char* name, spi::task body) {
  const signals_blocked blocked;
  auto thread = std::make_unique<std::jthread>([work = std::move(body)]() mutable { work(); });
  ::pthread_setname_np(thread->native_handle(), name);
  return thread;
}

void end_service(std::unique_ptr<std::jthread> thread) noexcept {
  if (thread == nullptr || !thread->joinable()) return;
  if (thread->get_id() == std::this_thread::get_id()) {
    thread->detach();
  } else {
    thread->join();
  }
}

}  // namespace holdfast::runtime
