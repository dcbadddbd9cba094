#include "core/hold.hpp"
#include "core/thread_holds.hpp"
#include "primitives/std_face.hpp"

#include <holdfast/recursive_mutex.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace holdfast {

namespace {

[[noreturn]] void not_inside(const char* call) noexcept {
  std::fprintf(stderr, "holdfast: recursive_mutex::%s on a thread that does not hold it\n", call);
  std::abort();
}

std::shared_ptr<core::hold> held_here(const detail::lock_handle& lock_handle, const char* call) {
  auto hold = lock_handle.in().local_queue->reentry().of(core::thread_token());
  if (!hold) not_inside(call);
  return hold;
}

}  // namespace

recursive_mutex::recursive_mutex(const client& client, std::string name,
                                 const lock_options& options)
    : handle_(client, std::move(name), options) {}

result<recursive_mutex> recursive_mutex::make(const client& client, std::string name,
                                              const lock_options& options) {
  return detail::made([&] { return recursive_mutex(client, std::move(name), options); });
}

void recursive_mutex::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool recursive_mutex::try_lock() { return lock_within(duration{0}); }

bool recursive_mutex::lock_within(duration wait) {
  detail::check_usable(handle_);
  core::local_queue& local_queue = *handle_.in().local_queue;
  const std::uint64_t thread = core::thread_token();
  switch (local_queue.reentry().enter(thread)) {
    case core::reentry::entry::entered:
      return true;
    case core::reentry::entry::lost:
      throw lock_error(error{errc::lost, "the lease ended; leave every entry first"});
    case core::reentry::entry::too_deep:
      throw lock_error(error{errc::overloaded, "at most 65,535 entries"});
    case core::reentry::entry::not_inside:
      break;
  }
  detail::check_not_held(handle_);
  auto granted = detail::take(handle_, wait);
  if (!granted) return false;
  // The hold moves from the lease into the local queue, where other objects of this name find it.
  local_queue.reentry().begin(thread, granted->take_inside(), handle_.in().local_queue);
  return true;
}

void recursive_mutex::unlock() noexcept {
  if (detail::forked(handle_)) return;
  const auto left = handle_.in().local_queue->reentry().exit(core::thread_token());
  if (!left.was_inside) not_inside("unlock");
  if (left.last) left.last->release();
}

fence_token recursive_mutex::fence() const { return held_here(handle_, "fence")->fence(); }

bool recursive_mutex::valid() const noexcept {
  const auto hold = handle_.in().local_queue->reentry().of(core::thread_token());
  return hold && hold->valid();
}

std::stop_token recursive_mutex::lost() const { return held_here(handle_, "lost")->lost(); }

}  // namespace holdfast
