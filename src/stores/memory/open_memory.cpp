// Opens the memory store, and keeps the one table that is global to a process: the names under
// which several clients share their claims. A name outlives its clients, as a server does: else its
// fences would begin again, and a lease that nobody released would end with its client.
#include "stores/memory/memory_store.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::memory {

namespace {

constexpr std::size_t names_at_most = 1'000;

result<std::shared_ptr<hub>> shared_hub(const std::string& name) {
  struct table {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<hub>> hubs;  // guarded by mutex
  };
  static table& names = *new table;  // never destroyed: clients may outlive main()
  const std::lock_guard lock(names.mutex);
  const auto known = names.hubs.find(name);
  if (known != names.hubs.end()) return known->second;
  if (names.hubs.size() >= names_at_most) {
    return failure(errc::overloaded,
                   "memory: more than " + std::to_string(names_at_most) + " names");
  }
  return names.hubs.emplace(name, std::make_shared<hub>()).first->second;
}

}  // namespace

result<std::shared_ptr<spi::store>> open_memory(const spi::url& url,
                                                std::shared_ptr<spi::runtime> runtime) {
  if (auto known = spi::check_options(url, {}); !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (!url.hosts.empty() || !url.user.empty() || !url.password.empty()) {
    return failure(errc::invalid, "URL: memory: has no host; write memory: or memory:NAME");
  }
  if (url.path.empty()) {
    return std::make_shared<memory_store>(std::move(runtime), std::make_shared<hub>());
  }
  auto server = shared_hub(url.path);
  if (!server) return tl::unexpected(std::move(server.error()));
  return std::make_shared<memory_store>(std::move(runtime), *std::move(server));
}

}  // namespace holdfast::memory
