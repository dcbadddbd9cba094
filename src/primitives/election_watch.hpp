// Follows who leads: looks when the engine tells of a change, and each second in case it did not;
// reports what is new, the latest winning over those in between.
//
// Thread-safe. One look and one report at a time. Ends with end(), or when the client is closed.
#pragma once

#include "primitives/call_guard.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/election.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace holdfast {

// Who leads, by the engine's word.
std::optional<leader_info> leader_of(const spi::resource_state& state);

class election_watch : public std::enable_shared_from_this<election_watch> {
 public:
  using report = std::function<void(const std::optional<leader_info>&)>;

  election_watch(std::shared_ptr<client::state> client, spi::resource_id resource,
                 report on_change);

  void start();
  // After this no report is made, nor does one run but on this thread.
  void end();

 private:
  struct reporting;

  void look();
  void looked(const result<spi::resource_state>& answer);
  void rest();
  void tell();
  void told();

  const std::shared_ptr<client::state> client_;
  const spi::resource_id resource_;
  const report on_change_;
  call_guard calls_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::unique_ptr<spi::subscription> subscription_;
  bool ended_ = false;
  bool looking_ = false;
  bool again_ = false;  // told of a change while a look was in flight
  bool telling_ = false;
  std::optional<std::optional<leader_info>> seen_;
  std::optional<std::optional<leader_info>> told_;
  spi::runtime::timer_id timer_ = 0;
};

}  // namespace holdfast
