// Leases: released, watched, described, changed, and handed from process to process by their token.
#include "c/call.hpp"
#include "c/handles.hpp"

#include <holdfast/client.hpp>

#include <atomic>
#include <string>
#include <utility>
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

void start_loss(hf_lease* of, hf_queue* queue, std::uint64_t tag, hf_call** call) {
  start_call(queue, tag, call, use_lease(of).inside->with([](const held::hold& taken) {
    if (held::count(taken) == 0) released_before();
    return loss_of(taken);
  }));
}

// A change of mode, begun while nobody else can release the lease.
template <class Begin>
void start_change(const hf_lock* lock, hf_lease* of, hf_queue* queue, std::uint64_t tag,
                  hf_call** call, const Begin& begin) {
  auto& changed = as_kind<shared_mutex>(lock, "shared lock");
  start_call(queue, tag, call, use_lease(of).inside->with([&](held::hold& taken) {
    auto* one = std::get_if<lease>(&taken);
    if (one == nullptr || !*one) mistake(errc::not_held, "it is not a lease of this lock");
    return begin(changed, *one);
  }));
}

constexpr auto begin_upgrade = [](shared_mutex& lock, lease& of) {
  return lock.async_try_upgrade(of);
};
constexpr auto begin_downgrade = [](shared_mutex& lock, lease& of) {
  return lock.async_downgrade(of);
};

// Starts something and waits for its answer; `take` is given the call that has one.
template <class Start, class Take>
hf_status wait_through(hf_error* error, const Start& start, const Take& take) noexcept {
  hf_call* call = nullptr;
  hf_status status = guarded(error, [&] { start(&call); });
  if (status == HF_OK) status = hf_call_wait(call, HF_FOREVER, error);
  if (status == HF_OK) status = take(call);
  hf_call_free(call);
  return status;
}

template <class Begin>
hf_status change(const hf_lock* lock, hf_lease* of, hf_error* error, const Begin& begin) noexcept {
  return wait_through(
      error, [&](hf_call** call) { start_change(lock, of, nullptr, 0, call, begin); },
      [](hf_call*) { return HF_OK; });
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

// What `ask` returns for the locks that are held; zero if none are.
template <class Ask>
auto of_held(const hf_lease* lease, const Ask& ask) {
  using answer = std::invoke_result_t<Ask, const held::hold&>;
  if (lease == nullptr || !lease->usable()) return answer{};
  return lease->inside->with(
      [&](const held::hold& taken) { return held::count(taken) == 0 ? answer{} : ask(taken); });
}

// The lease holds nothing from here on, unless it cannot be detached.
void start_detaching(hf_lease* of, hf_queue* queue, std::uint64_t tag, hf_call** call) {
  need(call, "call");
  hf_lease& given = use_lease(of);
  if (given.inside->recursive()) {
    mistake(errc::unsupported, "a recursive lock belongs to its owner");
  }
  start_call(queue, tag, call, given.inside->with([&](held::hold& taken) {
    auto* one = std::get_if<lease>(&taken);
    if (one == nullptr) mistake(errc::unsupported, "a multi-lock is several leases");
    if (!*one) released_before();
    auto begun = one->async_detach();
    if (!*one) given.released = true;
    return begun;
  }));
}

adopt_options adopt_options_of(const hf_adopt_options* options) {
  const auto given = read_struct(options, "hf_adopt_options");
  adopt_options made;
  made.ttl = duration_of(given.ttl);
  made.notice = duration_of(given.notice);
  if (given.max_hold != 0) made.max_hold = duration_of(given.max_hold);
  if (given.wait != 0) made.wait = duration_of(given.wait);
  made.renew = given.no_renewal != 0 ? renew::never : renew::automatic;
  return made;
}

// The client to use for a token.
const holdfast::client& client_for(const hf_client* client, const char* token) {
  const auto& found = use(client, "client").inside;
  need(token, "token");
  return found;
}

}  // namespace

extern "C" {

hf_status hf_release(hf_lease* lease, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    auto last = use_lease(lease).leave();
    if (!last) return {};
    return std::visit([](auto& each) { return each.release(); }, *last);
  });
}

hf_status hf_release_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                           hf_error* error) {
  return guarded(error, [&] {
    use_lease(lease);
    need(call, "call");
    auto last = lease->leave();
    begin_call(queue, tag, call, [&](call_state& state) {
      if (!last) return state.answer(call_state::value{});
      std::visit([&](auto& each) { state.run(each.async_release()); }, *last);
    });
  });
}

void hf_lease_free(hf_lease* lease) { delete lease; }

int hf_lease_valid(const hf_lease* lease) {
  return lease != nullptr && lease->usable() && lease->inside->valid() ? 1 : 0;
}

uint64_t hf_lease_fence(const hf_lease* lease) {
  return of_held(lease, [](const held::hold& taken) -> std::uint64_t {
    return held::part(taken, 0)->fence().value();
  });
}

hf_nanoseconds hf_lease_valid_for(const hf_lease* lease) {
  return of_held(lease, [](const held::hold& taken) -> hf_nanoseconds {
    return std::visit([](const auto& each) { return each.valid_for().count(); }, taken);
  });
}

size_t hf_lease_count(const hf_lease* lease) { return of_held(lease, held::count); }

hf_status hf_lease_describe(const hf_lease* lease, size_t index, hf_lease_info* info,
                            hf_error* error) {
  return guarded(error, [&] {
    if (use(lease, "lease").released) released_before();
    lease->inside->with([&](const held::hold& taken) {
      const auto* part = held::part(taken, index);
      if (part == nullptr && held::count(taken) == 0) released_before();
      if (part == nullptr) mistake(errc::invalid, "there are fewer locks in this lease");
      hf_lease_info made{};
      fill_info(*lease->inside, *part, made);
      write_struct(info, made, "info");
    });
  });
}

hf_status hf_lease_lost_fd(hf_lease* lease, int* fd, hf_error* error) {
  return guarded(error, [&] {
    use_lease(lease);
    need(fd, "fd");
    *fd = lease->inside->lost_fd();
  });
}

hf_status hf_lease_wait_lost(hf_lease* lease, hf_nanoseconds wait, hf_cancel* cancel,
                             hf_error* error) {
  hf_call* call = nullptr;
  hf_status status = guarded(error, [&] { start_loss(lease, nullptr, 0, &call); });
  if (status == HF_OK) {
    const std::stop_callback stopped(token_of(cancel), [&call] { hf_call_cancel(call); });
    status = hf_call_wait(call, wait, error);
  }
  hf_call_free(call);
  return status != HF_PENDING ? status : report(error, HF_TIMED_OUT, "timed out (not lost)");
}

hf_status hf_lost_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                        hf_error* error) {
  return guarded(error, [&] { start_loss(lease, queue, tag, call); });
}

hf_status hf_upgrade(const hf_lock* lock, hf_lease* lease, hf_error* error) {
  return change(lock, lease, error, begin_upgrade);
}

hf_status hf_upgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error) {
  return guarded(error, [&] { start_change(lock, lease, queue, tag, call, begin_upgrade); });
}

hf_status hf_downgrade(const hf_lock* lock, hf_lease* lease, hf_error* error) {
  return change(lock, lease, error, begin_downgrade);
}

hf_status hf_downgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error) {
  return guarded(error, [&] { start_change(lock, lease, queue, tag, call, begin_downgrade); });
}

hf_status hf_detach(hf_lease* lease, hf_text* token, hf_error* error) {
  return wait_through(
      error,
      [&](hf_call** call) {
        need(token, "token");
        start_detaching(lease, nullptr, 0, call);
      },
      [&](hf_call* call) {
        hf_text found{};
        const hf_status status = hf_call_token(call, &found, error);
        if (status != HF_OK) return status;
        return guarded(error, [&] {
          *token = lease->inside->with(
              [&](const held::hold&) { return lease->inside->keep(std::string(text_of(found))); });
        });
      });
}

hf_status hf_detach_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error) {
  return guarded(error, [&] { start_detaching(lease, queue, tag, call); });
}

hf_status hf_adopt(const hf_client* client, const char* token, size_t token_length,
                   const hf_adopt_options* options, hf_cancel* cancel, hf_lease** lease,
                   hf_error* error) {
  return guarded(error, [&] {
    const auto& by = client_for(client, token);
    need(lease, "lease");
    auto adopted =
        by.adopt(text_of(token, token_length), adopt_options_of(options), token_of(cancel));
    *lease = new hf_lease(std::make_shared<held>(std::move(adopted).value()));
  });
}

hf_status hf_adopt_start(const hf_client* client, const char* token, size_t token_length,
                         const hf_adopt_options* options, hf_queue* queue, uint64_t tag,
                         hf_call** call, hf_error* error) {
  return guarded(error, [&] {
    start_call(queue, tag, call,
               client_for(client, token)
                   .async_adopt(text_of(token, token_length), adopt_options_of(options)));
  });
}

hf_status hf_renew_token(const hf_client* client, const char* token, size_t token_length,
                         hf_nanoseconds ttl, hf_error* error) {
  return guarded(error, [&] {
    return client_for(client, token).renew(text_of(token, token_length), duration_of(ttl));
  });
}

hf_status hf_renew_token_start(const hf_client* client, const char* token, size_t token_length,
                               hf_nanoseconds ttl, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error) {
  return guarded(error, [&] {
    start_call(
        queue, tag, call,
        client_for(client, token).async_renew(text_of(token, token_length), duration_of(ttl)));
  });
}

hf_status hf_release_token(const hf_client* client, const char* token, size_t token_length,
                           hf_error* error) {
  return guarded(error,
                 [&] { return client_for(client, token).release(text_of(token, token_length)); });
}

hf_status hf_release_token_start(const hf_client* client, const char* token, size_t token_length,
                                 hf_queue* queue, uint64_t tag, hf_call** call, hf_error* error) {
  return guarded(error, [&] {
    start_call(queue, tag, call,
               client_for(client, token).async_release(text_of(token, token_length)));
  });
}
}

}  // namespace holdfast::c
