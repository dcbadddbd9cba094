// holdfast multi run: several locks, all or nothing.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"

#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace holdfast::cli {

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

}  // namespace holdfast::cli
