#include "c/call.hpp"
#include "c/lock.hpp"

#include <atomic>
#include <vector>

namespace holdfast::c {

namespace {

// The loss of one is the loss of all. The last to end without a loss says why.
class any_loss final : public detail::operation<void>,
                       public std::enable_shared_from_this<any_loss> {
 public:
  explicit any_loss(const std::vector<lease>& of) : left_(of.size()) {
    for (const lease& each : of) parts_.push_back(async_lost(each).take_inside());
  }

  void start(move_only_function<void(result<void>)> done, executor where) override {
    done_ = std::move(done);
    for (const auto& each : parts_) {
      each->start([self = shared_from_this()](result<void> how) { self->ended(std::move(how)); },
                  where);
    }
  }
  void cancel() noexcept override {
    for (const auto& each : parts_) each->cancel();
  }
  void abandon() noexcept override {
    for (const auto& each : parts_) each->abandon();
  }

 private:
  void ended(result<void> how) {
    const bool last = --left_ == 0;
    if (how || last) {
      if (!answered_.exchange(true)) done_(std::move(how));
    }
  }

  std::vector<std::shared_ptr<detail::operation<void>>> parts_;
  move_only_function<void(result<void>)> done_;
  std::atomic<std::size_t> left_;
  std::atomic<bool> answered_{false};
};

awaitable<void> loss_of(const held::hold& taken) {
  if (const auto* one = std::get_if<lease>(&taken)) return async_lost(*one);
  return awaitable<void>(std::make_shared<any_loss>(std::get<multi_lease>(taken).leases()));
}

result<void> start_loss(hf_lease* of, hf_queue* queue, std::uint64_t tag, hf_call** call) {
  if (auto wrong = check(of, "lease"); !wrong) return wrong;
  if (of->released) return released_before();
  auto loss = of->inside->with([](const held::hold& taken) -> std::optional<awaitable<void>> {
    if (held::count(taken) == 0) return std::nullopt;
    return loss_of(taken);
  });
  if (!loss) return released_before();
  return start_call(queue, tag, call,
                    [&](call_state& state) { state.run(std::move(*loss), turn_nothing); });
}

// A change of mode, begun while nobody else can release the lease.
template <class Begin>
result<void> start_change(const hf_lock* lock, hf_lease* of, hf_queue* queue, std::uint64_t tag,
                          hf_call** call, Begin&& begin) {
  const auto found = as_kind<shared_mutex>(lock, "shared lock");
  if (!found) return tl::unexpected(found.error());
  if (auto wrong = check(of, "lease"); !wrong) return wrong;
  if (of->released) return released_before();
  auto change = of->inside->with([&](held::hold& taken) -> std::optional<awaitable<void>> {
    auto* one = std::get_if<lease>(&taken);
    if (one == nullptr || !*one) return std::nullopt;
    return begin(**found, *one);
  });
  if (!change) return failure(errc::not_held, "it is not a lease of this lock");
  return start_call(queue, tag, call,
                    [&](call_state& state) { state.run(std::move(*change), turn_nothing); });
}

constexpr auto begin_upgrade = [](shared_mutex& lock, lease& of) {
  return lock.async_try_upgrade(of);
};
constexpr auto begin_downgrade = [](shared_mutex& lock, lease& of) {
  return lock.async_downgrade(of);
};

result<void> release_last(held::hold last) {
  return std::visit([](auto& each) { return each.release(); }, last);
}

void fill_info(held& of, const lease& part, hf_lease_info& info) {
  info.fence = part.fence().value();
  info.ttl = part.ttl().count();
  info.valid_for = part.valid_for().count();
  info.name = of.keep(part.name());
  info.claim = of.keep(part.claim());
  info.valid = part.valid() ? 1 : 0;
  info.wanted = part.wanted().stop_requested() ? 1 : 0;
  info.degraded = part.degraded() ? 1 : 0;
}

}  // namespace

extern "C" {

hf_status hf_release(hf_lease* lease, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(lease, "lease"); !wrong) return wrong;
    if (lease->released) return released_before();
    auto last = lease->leave();
    return last ? release_last(std::move(*last)) : result<void>{};
  });
}

hf_status hf_release_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                           hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(lease, "lease"); !wrong) return wrong;
    if (lease->released) return released_before();
    if (call == nullptr) return missing("call");
    auto last = lease->leave();
    return start_call(queue, tag, call, [&](call_state& state) {
      if (!last) return state.answer(call_state::value{});
      std::visit([&](auto& each) { state.run(each.async_release(), turn_nothing); }, *last);
    });
  });
}

void hf_lease_free(hf_lease* lease) { delete lease; }

int hf_lease_valid(const hf_lease* lease) {
  return lease != nullptr && lease->usable() && lease->inside->valid() ? 1 : 0;
}

uint64_t hf_lease_fence(const hf_lease* lease) {
  if (lease == nullptr || !lease->usable()) return 0;
  return lease->inside->with([](const held::hold& taken) -> std::uint64_t {
    const auto* first = held::part(taken, 0);
    return first == nullptr ? 0 : first->fence().value();
  });
}

hf_nanoseconds hf_lease_valid_for(const hf_lease* lease) {
  if (lease == nullptr || !lease->usable()) return 0;
  return lease->inside->with([](const held::hold& taken) -> hf_nanoseconds {
    if (held::count(taken) == 0) return 0;
    return std::visit([](const auto& each) { return each.valid_for().count(); }, taken);
  });
}

size_t hf_lease_count(const hf_lease* lease) {
  if (lease == nullptr || !lease->usable()) return 0;
  return lease->inside->with([](const held::hold& taken) { return held::count(taken); });
}

hf_status hf_lease_describe(const hf_lease* lease, size_t index, hf_lease_info* info,
                            hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(lease, "lease"); !wrong) return wrong;
    if (lease->released) return released_before();
    return lease->inside->with([&](const held::hold& taken) -> result<void> {
      const auto* part = held::part(taken, index);
      if (part == nullptr) {
        if (held::count(taken) == 0) return released_before();
        return failure(errc::invalid, "there are fewer locks in this lease");
      }
      hf_lease_info made{};
      fill_info(*lease->inside, *part, made);
      return write_struct(info, made, "info");
    });
  });
}

hf_status hf_lease_lost_fd(hf_lease* lease, int* fd, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(lease, "lease"); !wrong) return wrong;
    if (lease->released) return released_before();
    if (fd == nullptr) return missing("fd");
    const auto found = lease->inside->lost_fd();
    if (!found) return tl::unexpected(found.error());
    *fd = *found;
    return {};
  });
}

hf_status hf_lease_wait_lost(hf_lease* lease, hf_nanoseconds wait, hf_cancel* cancel,
                             hf_error* error) {
  hf_call* call = nullptr;
  hf_status status = guarded(error, [&] { return start_loss(lease, nullptr, 0, &call); });
  if (status == HF_OK) {
    const std::stop_callback stopped(token_of(cancel), [&call] { hf_call_cancel(call); });
    status = hf_call_wait(call, wait, error);
  }
  hf_call_free(call);
  return status != HF_PENDING ? status : report(error, HF_TIMED_OUT, "timed out (not lost)");
}

hf_status hf_lost_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                        hf_error* error) {
  return guarded(error, [&] { return start_loss(lease, queue, tag, call); });
}

hf_status hf_upgrade(const hf_lock* lock, hf_lease* lease, hf_error* error) {
  return wait_through(error, [&](hf_call** call) {
    return start_change(lock, lease, nullptr, 0, call, begin_upgrade);
  });
}

hf_status hf_upgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error) {
  return guarded(error, [&] { return start_change(lock, lease, queue, tag, call, begin_upgrade); });
}

hf_status hf_downgrade(const hf_lock* lock, hf_lease* lease, hf_error* error) {
  return wait_through(error, [&](hf_call** call) {
    return start_change(lock, lease, nullptr, 0, call, begin_downgrade);
  });
}

hf_status hf_downgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error) {
  return guarded(error,
                 [&] { return start_change(lock, lease, queue, tag, call, begin_downgrade); });
}
}

}  // namespace holdfast::c
