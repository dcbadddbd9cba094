// Acquiring locks of all kinds, blocking and not.
#include "c/call.hpp"
#include "c/lock.hpp"

#include <atomic>

namespace holdfast::c {

namespace {

// Not std::this_thread::get_id(): a later thread may have the same.
std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t mine = ++last;
  return mine;
}

template <class... Cases>
struct overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
overloaded(Cases...) -> overloaded<Cases...>;  // clang 16 does not deduce it by itself

struct acquisition_terms {
  acquire_options how;
  std::uint32_t permits = 1;
  bool shared = false;
  std::uint64_t owner = 0;
};

result<acquisition_terms> terms_of(const hf_lock* lock, hf_nanoseconds wait,
                                   const hf_acquire_options* options) {
  if (auto wrong = check(lock, "lock"); !wrong) return tl::unexpected(std::move(wrong.error()));
  const auto given = read_struct(options, "hf_acquire_options");
  if (!given) return tl::unexpected(given.error());
  if (given->shared != 0 && !std::holds_alternative<shared_mutex>(lock->inside)) {
    return failure(errc::invalid, "only a shared lock can be acquired for reading");
  }
  if (given->permits > 1 && !std::holds_alternative<semaphore>(lock->inside)) {
    return failure(errc::invalid, "only a semaphore has several permits");
  }
  return acquisition_terms{.how = {.wait = duration_of(wait)},
                           .permits = given->permits == 0 ? 1 : given->permits,
                           .shared = given->shared != 0,
                           .owner = given->owner};
}

entry_key entry_key_of(const recursive_lock& lock, std::uint64_t owner) {
  if (owner != 0) return {.name = lock.lock.name(), .is_thread = false, .owner = owner};
  return {.name = lock.lock.name(), .is_thread = true, .owner = this_thread_number()};
}

template <class Lease>
result<std::unique_ptr<hf_lease>> as_lease(result<Lease> answer) {
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return std::make_unique<hf_lease>(std::make_shared<held>(std::move(*answer)));
}

result<std::unique_ptr<hf_lease>> as_entry(result<lease> answer,
                                           const std::shared_ptr<reentries>& among,
                                           const entry_key& key) {
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto taken = std::make_shared<held>(std::move(*answer), among, key);
  among->begin(key, taken);
  return std::make_unique<hf_lease>(std::move(taken));
}

result<std::unique_ptr<hf_lease>> acquire_recursive(recursive_lock& lock,
                                                    const acquisition_terms& terms,
                                                    std::stop_token token) {
  const entry_key key = entry_key_of(lock, terms.owner);
  auto again = lock.among->enter(key);
  if (!again) return tl::unexpected(std::move(again.error()));
  if (*again) return std::make_unique<hf_lease>(std::move(*again));
  return as_entry(lock.lock.acquire(terms.how, std::move(token)), lock.among, key);
}

result<std::unique_ptr<hf_lease>> acquire_now(const hf_lock& lock, const acquisition_terms& terms,
                                              std::stop_token token) {
  return std::visit(
      overloaded{
          [&](recursive_lock& each) { return acquire_recursive(each, terms, std::move(token)); },
          [&](shared_mutex& each) {
            return as_lease(terms.shared ? each.acquire_shared(terms.how, std::move(token))
                                         : each.acquire(terms.how, std::move(token)));
          },
          [&](semaphore& each) {
            return as_lease(each.acquire(terms.how, std::move(token), terms.permits));
          },
          [&](election& each) { return as_lease(each.campaign(terms.how, std::move(token))); },
          [&](auto& each) { return as_lease(each.acquire(terms.how, std::move(token))); }},
      lock.inside);
}

result<call_state::value> turn_granted(result<std::unique_ptr<hf_lease>> granted) {
  if (!granted) return tl::unexpected(std::move(granted.error()));
  return call_state::value(std::move(*granted));
}

template <class Lease>
void run_acquisition(call_state& call, awaitable<Lease> acquisition) {
  call.run(std::move(acquisition), turn_lease<Lease>);
}

void start_recursive(call_state& call, recursive_lock& lock, const acquisition_terms& terms) {
  const entry_key key = entry_key_of(lock, terms.owner);
  auto again = lock.among->enter(key);
  if (!again) return call.answer(tl::unexpected(std::move(again.error())));
  if (*again) return call.answer(turn_granted(std::make_unique<hf_lease>(std::move(*again))));
  call.run(lock.lock.async_acquire(terms.how), [among = lock.among, key](result<lease> answer) {
    return turn_granted(as_entry(std::move(answer), among, key));
  });
}

void start_acquiring(call_state& call, const hf_lock& lock, const acquisition_terms& terms) {
  std::visit(
      overloaded{[&](recursive_lock& each) { start_recursive(call, each, terms); },
                 [&](shared_mutex& each) {
                   run_acquisition(call, terms.shared ? each.async_acquire_shared(terms.how)
                                                      : each.async_acquire(terms.how));
                 },
                 [&](semaphore& each) {
                   run_acquisition(call, each.async_acquire(terms.how, {}, terms.permits));
                 },
                 [&](election& each) { run_acquisition(call, each.async_campaign(terms.how)); },
                 [&](auto& each) { run_acquisition(call, each.async_acquire(terms.how)); }},
      lock.inside);
}

}  // namespace

extern "C" {

hf_status hf_acquire(const hf_lock* lock, hf_nanoseconds wait, const hf_acquire_options* options,
                     hf_cancel* cancel, hf_lease** lease, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto terms = terms_of(lock, wait, options);
    if (!terms) return tl::unexpected(terms.error());
    if (lease == nullptr) return missing("lease");
    auto granted = acquire_now(*lock, *terms, token_of(cancel));
    if (!granted) return tl::unexpected(std::move(granted.error()));
    *lease = granted->release();
    return {};
  });
}

hf_status hf_acquire_start(const hf_lock* lock, hf_nanoseconds wait,
                           const hf_acquire_options* options, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto terms = terms_of(lock, wait, options);
    if (!terms) return tl::unexpected(terms.error());
    return start_call(queue, tag, call,
                      [&](call_state& state) { start_acquiring(state, *lock, *terms); });
  });
}

hf_status hf_available_start(const hf_lock* lock, hf_queue* queue, uint64_t tag, hf_call** call,
                             hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto found = as_kind<semaphore>(lock, "semaphore");
    if (!found) return tl::unexpected(found.error());
    return start_call(queue, tag, call, [&](call_state& state) {
      state.run((*found)->async_available(),
                [](result<std::uint32_t> answer) -> result<call_state::value> {
                  if (!answer) return tl::unexpected(std::move(answer.error()));
                  return call_state::value(std::optional(*answer));
                });
    });
  });
}

hf_status hf_leader_start(const hf_lock* lock, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto found = as_kind<election>(lock, "election");
    if (!found) return tl::unexpected(found.error());
    return start_call(queue, tag, call, [&](call_state& state) {
      state.run((*found)->async_leader(),
                [](result<std::optional<leader_info>> answer) -> result<call_state::value> {
                  if (!answer) return tl::unexpected(std::move(answer.error()));
                  return call_state::value(std::move(*answer));
                });
    });
  });
}
}

}  // namespace holdfast::c
