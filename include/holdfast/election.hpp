// An election: one of many candidates leads, the others wait, and everyone may ask who leads.
//
//   holdfast::election scheduler(client, "scheduler", "host-7");
//   while (auto leader = scheduler.campaign()) work_until(leader->lost());
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast {

struct leader_info {
  std::string id;     // what the leader campaigned with
  fence_token fence;  // its term
  std::string claim;  // public id of its claim

  friend bool operator==(const leader_info&, const leader_info&) = default;
};

// Thread-safe. A term is a lease of an exclusive lock with the id as its payload. The lock is fair if
// the engine keeps an order, so that candidates lead in turn.
class election {
 public:
  // `id`: who we are, shown to observers; at most 256 bytes; empty: the client's payload.
  // Unprintable characters become '?'. Throws lock_error(invalid) as mutex does. options.fair is
  // ignored.
  election(const client& client, std::string name, const std::string& id,
           const lock_options& options = {});
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<election> make(const client& client, std::string name,
                                             const std::string& id,
                                             const lock_options& options = {});

  // Waits until it leads. Resign by releasing or destroying the lease. Stop when lost() fires.
  [[nodiscard]] result<lease> campaign(const acquire_options& options = {},
                                       std::stop_token token = {});
  acquire_awaitable async_campaign(const acquire_options& options = {}, std::stop_token token = {});
  void async_campaign(const acquire_options& options, std::stop_token token, acquire_callback done);

  // std::nullopt: nobody leads at the moment.
  [[nodiscard]] result<std::optional<leader_info>> leader() const;
  [[nodiscard]] awaitable<std::optional<leader_info>> async_leader() const;

  // Calls on_change with the current leader at once, then after changes; of several quick changes it
  // may report only the last. Calls are made on the client's executor, one at a time. Destroying the
  // subscription ends them, and waits for a call that runs on another thread.
  [[nodiscard]] result<std::unique_ptr<subscription>> observe(
      std::function<void(const std::optional<leader_info>&)> on_change) const;

  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

 private:
  client client_;
  std::string id_;
  detail::lock_handle handle_;
};

}  // namespace holdfast
