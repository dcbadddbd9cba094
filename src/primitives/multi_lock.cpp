#include "primitives/pause.hpp"
#include "primitives/std_face.hpp"

#include <holdfast/multi_lock.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace holdfast {

namespace {

// How long one lock may be waited for, by a slow engine, while another is held.
constexpr duration longest_try = std::chrono::seconds(1);

// A try that is answered in time, whatever the engine does.
result<lease> try_soon(const detail::seeker& seeker, const std::stop_token& token) {
  const auto& runtime = seeker.in().client->runtime;
  std::stop_source hurry;
  const std::stop_callback stopped(token, [&hurry] { hurry.request_stop(); });
  const auto timer =
      runtime->at(runtime->now() + longest_try, [late = hurry]() mutable { late.request_stop(); });
  auto answer = seeker.acquire({.wait = duration{0}}, hurry.get_token());
  runtime->cancel(timer);
  if (!answer && hurry.stop_requested() && !token.stop_requested()) {
    return failure(errc::unavailable, "no answer within 1 s");
  }
  return answer;
}

// Two groups that take each other's locks in step could go on so for long, the longer the slower the
// engine. A random pause after each failed round, up to what the failed tries took, then up to twice
// that and four times, lets one of them finish.
constexpr unsigned most_doublings = 2;
constexpr duration longest_pause = std::chrono::milliseconds(250);

duration random_pause(spi::runtime& runtime, duration tried, unsigned failures) {
  const duration longest =
      std::min(tried * (1U << std::min(failures, most_doublings)), longest_pause);
  if (longest <= duration{0}) return duration{0};
  return duration(
      static_cast<duration::rep>(runtime.random() % static_cast<std::uint64_t>(longest.count())));
}

void check_distinct(const std::vector<mutex*>& locks) {
  const auto refuse = [](const char* why) { throw lock_error(error{errc::invalid, why}); };
  if (locks.empty()) refuse("a multi-lock has one lock at least");
  for (std::size_t i = 0; i < locks.size(); ++i) {
    if (locks[i] == nullptr) refuse("a lock of a multi-lock is null");
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = locks[i]->inside().in().client == locks[j]->inside().in().client &&
                        locks[i]->name() == locks[j]->name();
      if (same) refuse("a multi-lock has the same lock twice");
    }
  }
}

// Contention and outage are waited out; everything else is an answer.
bool passing(const error& why) { return why == errc::busy || why == errc::unavailable; }

}  // namespace

multi_lock::multi_lock(std::vector<mutex*> locks) : locks_(std::move(locks)) {
  check_distinct(locks_);
  order_.resize(locks_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  // Who takes them in one order is seldom in another's way; it needs not be the same for all.
  std::stable_sort(order_.begin(), order_.end(), [this](std::size_t left, std::size_t right) {
    return locks_[left]->name() < locks_[right]->name();
  });
}

multi_lock::~multi_lock() {
  if (held_) unlock();
}

result<multi_lease> multi_lock::round(std::size_t& first, duration wait, duration& tried,
                                      const std::stop_token& token) {
  const auto& runtime = locks_.front()->inside().in().client->runtime;
  std::vector<lease> leases(locks_.size());
  time_point begun;
  for (std::size_t i = 0; i < locks_.size(); ++i) {
    const std::size_t place = (first + i) % locks_.size();
    const std::size_t which = order_[place];
    const detail::seeker& seeker = locks_[which]->inside();
    auto granted = i == 0 ? seeker.acquire({.wait = wait}, token) : try_soon(seeker, token);
    if (i == 0) begun = runtime->now();
    if (!granted) {
      first = place;
      tried = runtime->now() - begun;
      return tl::unexpected(std::move(granted.error()));
    }
    leases[which] = std::move(*granted);
  }
  return multi_lease(std::move(leases));
}

result<multi_lease> multi_lock::acquire(const acquire_options& options, std::stop_token token) {
  const auto& runtime = locks_.front()->inside().in().client->runtime;
  const time_point start = runtime->now();
  const time_point deadline =
      options.wait >= time_point::max() - start ? time_point::max() : start + options.wait;
  std::size_t first = 0;
  duration left = options.wait;
  for (unsigned failures = 0;; ++failures) {
    // What a round took is given back before the next begins, and the next waits for the lock that
    // was in the way: nobody holds one and waits for another, so no circle can close.
    const std::size_t waited_for = first;
    duration tried{0};
    auto all = round(first, left, tried, token);
    if (all && all->valid()) return all;
    const error why = all ? error{errc::lost, "one ended before all were there"} : all.error();
    all = failure(errc::busy);  // nothing is held from here on
    const bool again = why == errc::lost || (first != waited_for && passing(why));
    if (!again || options.wait <= duration{0}) return tl::unexpected(why);
    const duration pause = random_pause(*runtime, tried, failures);
    if (pause > duration{0}) {
      detail::pause_until(runtime, std::min(runtime->now() + pause, deadline), token);
    }
    const time_point present = runtime->now();
    if (present >= deadline) {
      return failure(why == errc::busy ? errc::timed_out : why.code, why.detail);
    }
    left = deadline == time_point::max() ? forever : deadline - present;
  }
}

void multi_lock::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool multi_lock::try_lock() { return lock_within(duration{0}); }

bool multi_lock::lock_within(duration wait) {
  for (const mutex* each : locks_) {
    detail::check_usable(each->inside());
    detail::check_not_held(each->inside());
  }
  auto granted = acquire({.wait = wait});
  if (!granted) {
    const error& why = granted.error();
    if (why == errc::busy || why == errc::timed_out) return false;
    throw lock_error(why);
  }
  owner_ = core::thread_token();
  for (const mutex* each : locks_) each->inside().in().gate->threads().add(owner_);
  held_ = std::move(*granted);
  return true;
}

void multi_lock::unlock() noexcept {
  if (!held_) return;
  for (const mutex* each : locks_) {
    const detail::seeker& seeker = each->inside();
    if (detail::forked(seeker)) continue;
    seeker.in().gate->threads().remove(owner_);
    if (owner_ != core::thread_token()) {
      seeker.in().client->engine->raise(event_kind::foreign_unlock,
                                        {.resource = seeker.in().resource});
    }
  }
  // Emptied before the locks are given back: the next holder of this object writes its own.
  const multi_lease last = std::exchange(held_, multi_lease{});
}

}  // namespace holdfast
