// holdfast run: one lock, shared or not, or permits of a semaphore.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"

#include <holdfast/election.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <memory>
#include <utility>
#include <vector>

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

// holdfast multi run: several locks, all or nothing.
int multi_run(const context& context, const hold_arguments& how) {
  std::string what;
  for (const std::string& name : how.names) what += (what.empty() ? "'" : ", '") + name + "'";
  return run_holding(context, how, what,
                     [&](const client& client, std::stop_token token) -> result<command_lease> {
                       std::vector<lock_part> parts;
                       for (const std::string& name : how.names) {
                         parts.emplace_back(mutex(client, name, how.lock));
                       }
                       multi_lock all(std::move(parts));
                       auto granted = all.acquire(how.acquire, std::move(token));
                       if (!granted) return tl::unexpected(std::move(granted.error()));
                       return command_lease(std::move(*granted));
                     });
}

// holdfast elect: runs the command while leader.
int elect(const context& context, const hold_arguments& asked) {
  hold_arguments how = asked;
  if (how.id.empty()) how.id = host_and_pid();
  return run_holding(context, how, "the election '" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) -> result<command_lease> {
                       election campaign(client, how.names.front(), how.id, how.lock);
                       auto term = campaign.campaign(how.acquire, std::move(token));
                       if (!term) return tl::unexpected(std::move(term.error()));
                       return command_lease(std::move(*term));
                     });
}

}  // namespace holdfast::cli
