#include "c/lock.hpp"

#include <string>
#include <vector>

namespace holdfast::c {

namespace {

result<lock_options> lock_options_of(const hf_lock_options* options) {
  const auto given = read_struct(options, "hf_lock_options");
  if (!given) return tl::unexpected(given.error());
  lock_options made;
  if (given->ttl != 0) made.ttl = duration_of(given->ttl);
  made.notice = duration_of(given->notice);
  made.lock_delay = duration_of(given->lock_delay);
  if (given->max_hold != 0) made.max_hold = duration_of(given->max_hold);
  made.payload = text_of(given->payload);
  made.retry = retry_of(given->retry);
  made.fair = given->fair != 0;
  made.renew = given->no_renewal != 0 ? renew::never : renew::automatic;
  return made;
}

// Makes a lock of a name; `make` is given the name and its options, and answers a result of its kind.
template <class Make>
hf_status new_lock(const hf_client* client, const char* name, size_t name_length,
                   const hf_lock_options* options, hf_lock** lock, hf_error* error,
                   Make&& make) noexcept {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    if (name == nullptr) return missing("name");
    if (lock == nullptr) return missing("lock");
    const auto given = lock_options_of(options);
    if (!given) return tl::unexpected(given.error());
    auto made = make(std::string(text_of(name, name_length)), *given);
    if (!made) return tl::unexpected(std::move(made.error()));
    *lock = new hf_lock{{}, hf_lock::kinds(std::move(*made))};
    return {};
  });
}

result<lock_part> part_of(const hf_part& given) {
  if (auto wrong = check(given.lock, "lock of a part"); !wrong) {
    return tl::unexpected(std::move(wrong.error()));
  }
  const auto& inside = given.lock->inside;
  if (const auto* plain = std::get_if<mutex>(&inside)) return lock_part(*plain);
  if (const auto* both = std::get_if<shared_mutex>(&inside)) {
    return given.shared != 0 ? reading(*both) : lock_part(*both);
  }
  if (const auto* several = std::get_if<semaphore>(&inside)) {
    return permits(*several, given.permits == 0 ? 1 : given.permits);
  }
  return failure(errc::invalid, "a multi-lock takes mutexes, shared locks and semaphores");
}

}  // namespace

extern "C" {

hf_status hf_mutex_new(const hf_client* client, const char* name, size_t name_length,
                       const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](std::string of, const lock_options& given) {
                    return mutex::make(client->inside, std::move(of), given);
                  });
}

hf_status hf_recursive_new(const hf_client* client, const char* name, size_t name_length,
                           const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](std::string of, const lock_options& given) -> result<recursive_lock> {
                    auto made = mutex::make(client->inside, std::move(of), given);
                    if (!made) return tl::unexpected(std::move(made.error()));
                    return recursive_lock{client->entries, std::move(*made)};
                  });
}

hf_status hf_shared_new(const hf_client* client, const char* name, size_t name_length,
                        const hf_lock_options* options, hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](std::string of, const lock_options& given) {
                    return shared_mutex::make(client->inside, std::move(of), given);
                  });
}

hf_status hf_semaphore_new(const hf_client* client, const char* name, size_t name_length,
                           uint32_t max, const hf_lock_options* options, hf_lock** lock,
                           hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](std::string of, const lock_options& given) {
                    return semaphore::make(client->inside, std::move(of),
                                           {.max = max, .lock = given});
                  });
}

hf_status hf_election_new(const hf_client* client, const char* name, size_t name_length,
                          const char* id, size_t id_length, const hf_lock_options* options,
                          hf_lock** lock, hf_error* error) {
  return new_lock(client, name, name_length, options, lock, error,
                  [&](std::string of, const lock_options& given) {
                    return election::make(client->inside, std::move(of),
                                          std::string(text_of(id, id_length)), given);
                  });
}

hf_status hf_multi_new(const hf_part* parts, size_t count, hf_lock** lock, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (parts == nullptr || count == 0) return missing("a multi-lock's first lock");
    if (lock == nullptr) return missing("lock");
    std::vector<lock_part> taken;
    const auto* at = reinterpret_cast<const unsigned char*>(parts);
    // The caller's structure may be larger than ours; all of them have the size of the first.
    for (std::size_t index = 0; index < count; ++index, at += parts->size) {
      const auto given = read_struct(reinterpret_cast<const hf_part*>(at), "hf_part");
      if (!given) return tl::unexpected(given.error());
      auto part = part_of(*given);
      if (!part) return tl::unexpected(std::move(part.error()));
      taken.push_back(std::move(*part));
    }
    auto made = multi_lock::make(std::move(taken));
    if (!made) return tl::unexpected(std::move(made.error()));
    *lock = new hf_lock{{}, hf_lock::kinds(std::move(*made))};
    return {};
  });
}

void hf_lock_free(hf_lock* lock) { delete lock; }

hf_status hf_resize(hf_lock* lock, uint32_t max, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto found = as_kind<semaphore>(lock, "semaphore");
    if (!found) return tl::unexpected(found.error());
    return (*found)->resize(max);
  });
}

hf_status hf_available(const hf_lock* lock, uint32_t* permits, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto found = as_kind<semaphore>(lock, "semaphore");
    if (!found) return tl::unexpected(found.error());
    if (permits == nullptr) return missing("permits");
    const auto answer = (*found)->available();
    if (!answer) return tl::unexpected(answer.error());
    *permits = *answer;
    return {};
  });
}
}

}  // namespace holdfast::c
