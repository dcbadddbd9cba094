// Locks of all kinds, and acquiring them, blocking and not.
#include "c/call.hpp"
#include "c/handles.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace holdfast::c {

namespace {

lock_options lock_options_of(const hf_lock_options* options) {
  const auto given = read_struct(options, "hf_lock_options");
  lock_options made;
  if (given.ttl != 0) made.ttl = duration_of(given.ttl);
  made.notice = duration_of(given.notice);
  made.lock_delay = duration_of(given.lock_delay);
  if (given.max_hold != 0) made.max_hold = duration_of(given.max_hold);
  made.payload = text_of(given.payload);
  made.retry = retry_of(given.retry);
  made.fair = given.fair != 0;
  made.renew = given.no_renewal != 0 ? renew::never : renew::automatic;
  return made;
}

// Makes a lock with a name; `make` gets the name and its options, and returns a result of its kind.
template <class Make>
hf_status new_lock(const hf_client* client, const char* name, size_t name_length,
                   const hf_lock_options* options, hf_lock** lock, hf_error* error,
                   const Make& make) noexcept {
  return guarded(error, [&] {
    const hf_client& of = use(client, "client");
    need(name, "name");
    need(lock, "lock");
    auto made = make(of.inside, std::string(text_of(name, name_length)), lock_options_of(options));
    *lock = new hf_lock{{}, hf_lock::kinds(std::move(made).value())};
  });
}

lock_part part_of(const hf_part& given) {
  const auto& inside = use(given.lock, "lock of a part").inside;
  if (const auto* plain = std::get_if<mutex>(&inside)) return {*plain};
  if (const auto* both = std::get_if<shared_mutex>(&inside)) {
    return given.shared != 0 ? reading(*both) : lock_part(*both);
  }
  if (const auto* several = std::get_if<semaphore>(&inside)) {
    return permits(*several, given.permits == 0 ? 1 : given.permits);
  }
  mistake(errc::invalid, "a multi-lock takes mutexes, shared locks and semaphores");
}

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

acquisition_terms terms_of(const hf_lock* lock, hf_nanoseconds wait,
                           const hf_acquire_options* options) {
  const auto& inside = use(lock, "lock").inside;
  const auto given = read_struct(options, "hf_acquire_options");
  if (given.shared != 0 && !std::holds_alternative<shared_mutex>(inside)) {
    mistake(errc::invalid, "only a shared lock can be acquired for reading");
  }
  if (given.permits > 1 && !std::holds_alternative<semaphore>(inside)) {
    mistake(errc::invalid, "only a semaphore has several permits");
  }
  return {.how = {.wait = duration_of(wait)},
          .permits = given.permits == 0 ? 1 : given.permits,
          .shared = given.shared != 0,
          .owner = given.owner};
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

void start_recursive(call_state& call, recursive_lock& lock, const acquisition_terms& terms) {
  const entry_key key = entry_key_of(lock, terms.owner);
  auto again = lock.among->enter(key);
  if (!again) return call.answer(tl::unexpected(std::move(again.error())));
  if (*again) return call.answer(std::make_unique<hf_lease>(std::move(*again)));
  call.run(lock.lock.async_acquire(terms.how), [among = lock.among, key](result<lease> answer) {
    return call_state::kept(as_entry(std::move(answer), among, key));
  });
}

void start_acquiring(call_state& call, const hf_lock& lock, const acquisition_terms& terms) {
  std::visit(overloaded{[&](recursive_lock& each) { start_recursive(call, each, terms); },
                        [&](shared_mutex& each) {
                          call.run(terms.shared ? each.async_acquire_shared(terms.how)
                                                : each.async_acquire(terms.how));
                        },
                        [&](semaphore& each) {
                          call.run(each.async_acquire(terms.how, {}, terms.permits));
                        },
                        [&](election& each) { call.run(each.async_campaign(terms.how)); },
                        [&](auto& each) { call.run(each.async_acquire(terms.how)); }},
             lock.inside);
}

}  // namespace

extern "C" {

hf_status hf_mutex_new(const hf_client* client, const char* name, size_t name_length,
                       const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [](const auto& of, const std::string& called, const lock_options& given) {
                    return mutex::make(of, called, given);
                  });
}

hf_status hf_recursive_new(const hf_client* client, const char* name, size_t name_length,
                           const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](const auto& of, const std::string& called,
                      const lock_options& given) -> result<recursive_lock> {
                    auto made = mutex::make(of, called, given);
                    return recursive_lock{client->entries, std::move(made).value()};
                  });
}

hf_status hf_shared_new(const hf_client* client, const char* name, size_t name_length,
                        const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [](const auto& of, const std::string& called, const lock_options& given) {
                    return shared_mutex::make(of, called, given);
                  });
}

hf_status hf_semaphore_new(const hf_client* client, const char* name, size_t name_length,
                           uint32_t max, const hf_lock_options* options, hf_lock** lock,
                           hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](const auto& of, const std::string& called, const lock_options& given) {
                    return semaphore::make(of, called, {.max = max, .lock = given});
                  });
}

hf_status hf_election_new(const hf_client* client, const char* name, size_t name_length,
                          const char* id, size_t id_length, const hf_lock_options* options,
                          hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](const auto& of, const std::string& called, const lock_options& given) {
                    return election::make(of, called, std::string(text_of(id, id_length)), given);
                  });
}

hf_status hf_multi_new(const hf_part* parts, size_t count, hf_lock** lock, hf_error* error) {
  return guarded(error, [&] {
    need(count == 0 ? nullptr : parts, "a multi-lock's first lock");
    need(lock, "lock");
    std::vector<lock_part> taken;
    const auto* at = reinterpret_cast<const unsigned char*>(parts);
    // The caller's structure may be larger than ours; all of them have the size of the first.
    for (std::size_t index = 0; index < count; ++index, at += parts->size) {
      taken.push_back(part_of(read_struct(reinterpret_cast<const hf_part*>(at), "hf_part")));
    }
    *lock = new hf_lock{{}, hf_lock::kinds(multi_lock::make(std::move(taken)).value())};
  });
}

void hf_lock_free(hf_lock* lock) { delete lock; }

hf_status hf_acquire(const hf_lock* lock, hf_nanoseconds wait, const hf_acquire_options* options,
                     hf_cancel* cancel, hf_lease** lease, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto terms = terms_of(lock, wait, options);
    need(lease, "lease");
    auto granted = acquire_now(*lock, terms, token_of(cancel));
    if (!granted) return tl::unexpected(std::move(granted.error()));  // often: not thrown
    *lease = granted->release();
    return {};
  });
}

hf_status hf_acquire_start(const hf_lock* lock, hf_nanoseconds wait,
                           const hf_acquire_options* options, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error) {
  return guarded(error, [&] {
    const auto terms = terms_of(lock, wait, options);
    begin_call(queue, tag, call, [&](call_state& state) { start_acquiring(state, *lock, terms); });
  });
}

hf_status hf_resize(hf_lock* lock, uint32_t max, hf_error* error) {
  return guarded(error, [&] { return as_kind<semaphore>(lock, "semaphore").resize(max); });
}

hf_status hf_available(const hf_lock* lock, uint32_t* permits, hf_error* error) {
  return guarded(error, [&] {
    const auto& of = as_kind<semaphore>(lock, "semaphore");
    need(permits, "permits");
    *permits = of.available().value();
  });
}

hf_status hf_available_start(const hf_lock* lock, hf_queue* queue, uint64_t tag, hf_call** call,
                             hf_error* error) {
  return guarded(error, [&] {
    start_call(queue, tag, call, as_kind<semaphore>(lock, "semaphore").async_available());
  });
}

hf_status hf_leader_start(const hf_lock* lock, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error) {
  return guarded(error, [&] {
    start_call(queue, tag, call, as_kind<election>(lock, "election").async_leader());
  });
}
}

}  // namespace holdfast::c
