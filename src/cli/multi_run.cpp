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
                     [&](const client& client, std::stop_token token) -> result<grip> {
                       std::vector<std::unique_ptr<mutex>> locks;
                       std::vector<mutex*> pointers;
                       for (const std::string& name : how.names) {
                         locks.push_back(std::make_unique<mutex>(client, name, how.lock));
                         pointers.push_back(locks.back().get());
                       }
                       multi_lock all(pointers);
                       auto granted = all.acquire(how.acquire, std::move(token));
                       if (!granted) return tl::unexpected(std::move(granted.error()));
                       return grip(std::move(*granted));
                     });
}

}  // namespace holdfast::cli
