#include "core/hold.hpp"
#include "primitives/multi_acquisition.hpp"
#include "primitives/operation.hpp"
#include "primitives/std_face.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/multi_lock.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast {

namespace {

template <class Lock>
const Lock& there(const Lock* lock) {
  if (lock == nullptr) throw lock_error(error{errc::invalid, "a lock of a multi-lock is null"});
  return *lock;
}

void check_distinct(const std::vector<lock_part>& parts) {
  const auto refuse = [](const char* why) { throw lock_error(error{errc::invalid, why}); };
  if (parts.empty()) refuse("a multi-lock needs at least one lock");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = parts[i].inside().in().client == parts[j].inside().in().client &&
                        parts[i].inside().name() == parts[j].inside().name();
      if (same) refuse("a multi-lock lists the same lock twice");
    }
  }
}

class multi_operation final : public detail::client_operation<multi_lease> {
 public:
  multi_operation(const std::shared_ptr<core::engine>& engine,
                  std::shared_ptr<multi_acquisition> acquisition, std::stop_token token)
      : client_operation<multi_lease>(engine),
        acquisition_(std::move(acquisition)),
        token_(std::move(token)) {}

 private:
  void begin() override {
    const auto self = std::static_pointer_cast<multi_operation>(shared_from_this());
    if (token_.stop_requested()) acquisition_->cancel();
    acquisition_->start([self](result<multi_lease> answer) { self->arrived(std::move(answer)); });
    if (token_.stop_possible()) on_stop_.emplace(token_, acquisition_);
  }
  void stop() noexcept override { acquisition_->cancel(); }

  const std::shared_ptr<multi_acquisition> acquisition_;
  std::stop_token token_;
  detail::stop_cancels<multi_acquisition> on_stop_;  // touched by begin() only
};

// A permit belongs to no thread: its holder may take another.
bool owned(const lock_part& part) { return part.inside().in().terms.mode != lock_mode::permit; }

}  // namespace

lock_part::lock_part(const mutex* lock) : lock_part(there(lock)) {}
lock_part::lock_part(const shared_mutex* lock) : lock_part(there(lock)) {}
lock_part reading(const shared_mutex& lock) { return lock_part(lock.inside_shared()); }
lock_part permits(const semaphore& from, std::uint32_t count) {
  return lock_part(from.inside(count));
}

multi_lock::multi_lock(std::vector<lock_part> parts) {
  check_distinct(parts);
  parts_ = std::make_shared<const std::vector<lock_part>>(std::move(parts));
}

result<multi_lock> multi_lock::make(std::vector<lock_part> parts) {
  return detail::made([&] { return multi_lock(std::move(parts)); });
}

// Copies, as a mutex does, so the moved-from multi_lock can still be used.
multi_lock::multi_lock(multi_lock&& other) noexcept {
  detail::check_movable(!other.held_, "multi_lock");
  parts_ = other.parts_;
}

multi_lock& multi_lock::operator=(multi_lock&& other) noexcept {
  detail::check_movable(!held_ && !other.held_, "multi_lock");
  parts_ = other.parts_;
  return *this;
}

multi_lock::~multi_lock() {
  if (held_) unlock();
}

result<multi_lease> multi_lock::acquire(const acquire_options& options, std::stop_token token) {
  for (const lock_part& each : *parts_) {
    if (auto fine = check_may_block(*each.inside().in().client->runtime); !fine) {
      return tl::unexpected(std::move(fine.error()));
    }
  }
  if (token.stop_requested()) return failure(errc::cancelled, "stopped before it began");
  const auto acquisition =
      std::make_shared<multi_acquisition>(parts_, options, core::thread_token());
  auto meeting =
      std::make_shared<rendezvous<multi_lease>>(parts_->front().inside().in().client->runtime);
  acquisition->start([meeting](result<multi_lease> answer) { meeting->arrive(std::move(answer)); });
  const std::stop_callback on_stop(std::move(token), [&acquisition] { acquisition->cancel(); });
  return meeting->wait();
}

awaitable<multi_lease> multi_lock::async_acquire(const acquire_options& options,
                                                 std::stop_token token) {
  return awaitable<multi_lease>(std::make_shared<multi_operation>(
      parts_->front().inside().in().client->engine,
      std::make_shared<multi_acquisition>(parts_, options, 0), std::move(token)));
}

void multi_lock::async_acquire(const acquire_options& options, std::stop_token token,
                               move_only_function<void(result<multi_lease>)> done) {
  async_acquire(options, std::move(token)).then(std::move(done));
}

void multi_lock::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool multi_lock::try_lock() { return lock_within(duration{0}); }

bool multi_lock::lock_within(duration wait) {
  for (const lock_part& each : *parts_) {
    detail::check_usable(each.inside());
    if (owned(each)) detail::check_not_held(each.inside());
  }
  auto granted = detail::unless_busy(acquire({.wait = wait}));
  if (!granted) return false;
  owner_ = core::thread_token();
  for (const lock_part& each : *parts_) {
    if (owned(each)) each.inside().in().local_queue->threads().add(owner_);
  }
  held_ = std::move(*granted);
  return true;
}

void multi_lock::unlock() noexcept {
  if (!held_) return;
  for (const lock_part& each : *parts_) {
    if (owned(each)) detail::leave_thread(each.inside(), owner_, {});
  }
  // Emptied before the locks are released: the next holder of this object writes its own.
  const multi_lease last = std::exchange(held_, multi_lease{});
}

struct multi_lease::inside {
  struct pass_on {
    std::stop_source all;
    void operator()() noexcept { all.request_stop(); }
  };

  explicit inside(std::vector<lease> given) : leases(std::move(given)) {
    for (const lease& each : leases) {
      listeners.push_back(
          std::make_unique<std::stop_callback<pass_on>>(each.lost(), pass_on{lost}));
    }
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() {
    listeners.clear();
    while (!leases.empty()) leases.pop_back();
  }

  std::vector<lease> leases;
  std::stop_source lost;
  std::vector<std::unique_ptr<std::stop_callback<pass_on>>> listeners;
};

multi_lease::multi_lease() noexcept = default;
multi_lease::multi_lease(std::vector<lease> leases)
    : inside_(std::make_unique<inside>(std::move(leases))) {}
multi_lease::multi_lease(multi_lease&&) noexcept = default;
multi_lease& multi_lease::operator=(multi_lease&&) noexcept = default;
multi_lease::~multi_lease() = default;

result<void> multi_lease::release() {
  const auto last = std::exchange(inside_, nullptr);
  if (!last) return failure(errc::not_held, "this lease holds nothing");
  last->listeners.clear();
  result<void> first;
  for (auto each = last->leases.rbegin(); each != last->leases.rend(); ++each) {
    auto answer = each->release();
    if (first && !answer) first = std::move(answer);
  }
  return first;
}

namespace {

// Releases the leases one after the other, the last first; each completion starts the next.
struct giving_back {
  std::vector<lease> left;
  result<void> first;
  spi::completion<void> done;

  static void step(std::shared_ptr<giving_back> all) {
    if (all->left.empty()) return std::exchange(all->done, nullptr)(std::move(all->first));
    const auto hold = all->left.back().take_inside();
    all->left.pop_back();
    hold->release([all](result<void> answer) {
      if (all->first && !answer) all->first = std::move(answer);
      step(all);
    });
  }
};

}  // namespace

awaitable<void> multi_lease::async_release() {
  auto last = std::exchange(inside_, nullptr);
  if (!last || last->leases.empty()) {
    return detail::make_refusal<void>({errc::not_held, "this lease holds nothing"});
  }
  last->listeners.clear();
  auto owner = last->leases.front().inside()->owner();
  auto all = std::make_shared<giving_back>();
  all->left = std::move(last->leases);
  return detail::call_soon<void>(std::move(owner),
                                 [all = std::move(all)](spi::completion<void> done) {
                                   all->done = std::move(done);
                                   giving_back::step(all);
                                 });
}

bool multi_lease::valid() const noexcept {
  return inside_ != nullptr && std::all_of(inside_->leases.begin(), inside_->leases.end(),
                                           [](const lease& each) { return each.valid(); });
}

time_point multi_lease::valid_until() const noexcept {
  if (inside_ == nullptr) return time_point::min();
  time_point earliest = time_point::max();
  for (const lease& each : inside_->leases) earliest = std::min(earliest, each.valid_until());
  return earliest;
}

duration multi_lease::valid_for() const noexcept {
  duration shortest = inside_ == nullptr ? duration{0} : forever;
  for (const lease& each : leases()) shortest = std::min(shortest, each.valid_for());
  return shortest;
}

std::stop_token multi_lease::lost() const {
  return inside_ != nullptr ? inside_->lost.get_token() : lease().lost();
}

const std::vector<lease>& multi_lease::leases() const noexcept {
  static const std::vector<lease> none;
  return inside_ == nullptr ? none : inside_->leases;
}

}  // namespace holdfast
