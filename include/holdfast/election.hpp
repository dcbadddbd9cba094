// An election: one of many is leader; the others wait their turn, and everybody may ask who it is.
//
//   holdfast::election scheduler(client, "scheduler", "host-7");
//   while (auto leader = scheduler.campaign()) work_until(leader->lost());
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/seeker.hpp>
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

// Thread-safe. Terms are leases of one exclusive claim with the id as payload; fair where the engine
// keeps an order, so that the candidates follow in turn.
class election {
 public:
  // `id`: who we are, shown to observers; at most 256 bytes; empty: the client's payload. What is
  // not printable in it becomes '?'. Throws lock_error(invalid) as mutex does. options.fair is not
  // asked.
  election(const client& client, std::string name, const std::string& id,
           const lock_options& options = {});
  // The same for a name from outside: answers invalid where the constructor throws it.
  [[nodiscard]] static result<election> make(const client& client, std::string name,
                                             const std::string& id,
                                             const lock_options& options = {});

  // Waits until leader. Resign by releasing or dropping the lease; stop leading when lost() fires.
  [[nodiscard]] result<lease> campaign(const acquire_options& options = {},
                                       std::stop_token token = {});
  acquire_awaitable async_campaign(const acquire_options& options = {}, std::stop_token token = {});
  void async_campaign(const acquire_options& options, std::stop_token token, acquire_callback done);

  // None: nobody leads at the moment.
  [[nodiscard]] result<std::optional<leader_info>> leader() const;
  [[nodiscard]] awaitable<std::optional<leader_info>> async_leader() const;

  // Calls on_change with the current leader at once, then at every change, the latest one winning
  // over those in between; on the client's executor, one call at a time. Ends when the returned
  // subscription is destroyed, which waits for a call that runs on another thread.
  [[nodiscard]] result<std::unique_ptr<subscription>> observe(
      std::function<void(const std::optional<leader_info>&)> on_change) const;

  [[nodiscard]] const std::string& name() const noexcept { return seeker_.name(); }
  [[nodiscard]] const std::string& id() const noexcept { return id_; }

 private:
  client client_;
  std::string id_;
  detail::seeker seeker_;
};

}  // namespace holdfast
