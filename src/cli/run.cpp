// holdfast run: one lock, shared or not, or permits of a semaphore.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <utility>

namespace holdfast::cli {

result<lease> take(const hold_arguments& how, const client& client, std::stop_token token) {
  const std::string& name = how.names.front();
  if (how.max) {
    semaphore permits(client, name, {.max = *how.max, .lock = how.lock});
    return permits.acquire(how.acquire, std::move(token), how.permits);
  }
  if (how.shared) {
    shared_mutex readers(client, name, how.lock);
    return readers.acquire_shared(how.acquire, std::move(token));
  }
  mutex lock(client, name, how.lock);
  return lock.acquire(how.acquire, std::move(token));
}

int run(const context& context, const hold_arguments& how) {
  return run_holding(context, how, "'" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) -> result<command_lease> {
                       auto granted = take(how, client, std::move(token));
                       if (!granted) return tl::unexpected(std::move(granted.error()));
                       return command_lease(std::move(*granted));
                     });
}

}  // namespace holdfast::cli
