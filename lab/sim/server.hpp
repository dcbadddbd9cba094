// The server of a world: the shipped ledger behind a simulated network, with a clock of its own. It
// may be paused, restart with its state or without, and speak three dialects.
//
// Keeps its own record of what it told whom, separate from the ledger's: what is recorded as
// granted, prolonged or withdrawn comes from its answers and pushes, so that a wrong ledger
// cannot hide its error.
#pragma once

#include "sim/claim_book.hpp"
#include "sim/event_loop.hpp"
#include "sim/history.hpp"
#include "sim/link.hpp"
#include "sim/message.hpp"
#include "sim/step_listener.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace holdfast::sim {

enum class dialect : std::uint8_t {
  queueing,  // keeps a queue and pushes grants
  watching,  // keeps no queue; pushes "free" to whoever asked for it
  polling,   // pushes nothing
};

struct server_settings {
  sim::dialect dialect = dialect::queueing;
  bool timers = true;  // acts when a lease ends; otherwise only on a request
  memory::rules rules{};
  bool forgets_fences = false;  // with its state, as a real server does
};

class server : public node {
 public:
  server(event_loop& loop, history& log, claim_book& book, node_clock clock,
         const server_settings& settings, step_listener& steps);

  void connect(link* client) { links_.push_back(client); }

  reply execute(const request& message);

  [[nodiscard]] bool up() const noexcept { return up_; }
  [[nodiscard]] spi::server_time time() const noexcept {
    return spi::server_time(clock().shows(loop_.now()));
  }

  // Troubles.
  void stop();
  void start(bool with_state);
  void jump(duration by);

  // What is left when everything has been released.
  [[nodiscard]] bool empty();

 private:
  // What the server last said about a claim.
  struct standing {
    enum class state : std::uint8_t { unknown, waiting, holding };
    state now = state::unknown;
    std::uint64_t fence = 0;
    spi::server_time until{};
  };

  reply_value attempt(const request& message, memory::effects& out);
  reply_value watch(const request& message);
  reply_value leave(const request& message, memory::effects& out);
  reply_value renew(const request& message, memory::effects& out);
  reply_value change(const request& message, memory::effects& out);
  reply_value transfer(const request& message, memory::effects& out);
  reply_value raise(const request& message, memory::effects& out);
  reply_value latch(const request& message, memory::effects& out);

  using told_grant = std::pair<spi::claim_id, spi::granted>;

  void emit(memory::effects out, std::optional<told_grant> answered = std::nullopt);
  void note_grant(const spi::claim_id& id, const spi::granted& grant,
                  what grant_kind = what::server_granted);
  void note_end(const spi::claim_id& id);
  void wake_watchers(const spi::resource_id& resource);
  void arm();
  [[nodiscard]] memory::ledger make_ledger(std::uint64_t fence_floor);
  [[nodiscard]] bool held(std::int32_t resource) const;

  event_loop& loop_;
  history& log_;
  claim_book& book_;
  const server_settings settings_;
  step_listener& steps_;
  memory::ledger ledger_;
  std::vector<link*> links_;
  bool up_ = true;
  std::uint64_t greatest_fence_ = 0;
  std::map<spi::claim_id, standing> standings_;
  std::map<spi::claim_id, spi::claim_ptr> claims_;
  std::map<spi::resource_id, std::map<spi::claim_id, std::int32_t>> watchers_;
  std::map<spi::resource_id, std::set<std::int32_t>> latch_watchers_;
  event_loop::event_id timer_ = 0;
  moment timer_at_ = moment::max();
};

}  // namespace holdfast::sim
