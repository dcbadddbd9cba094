// What travels between a client's store and the server of a world.
#pragma once

#include "sim/record.hpp"
#include "stores/memory/ledger.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace holdfast::sim {

enum class verb : std::uint8_t {
  attempt,
  watch,
  leave,
  renew,
  change,
  transfer,
  raise,
  change_latch,
  read_latch,
  watch_latch,
};

struct request {
  verb what = verb::attempt;
  std::uint64_t operation = 0;  // of this client; the reply names it
  std::int32_t process = 0;
  std::vector<spi::claim_ptr> claims;  // one, but for renew
  memory::on_leave then = memory::on_leave::forget;
  spi::mode to = spi::mode::exclusive;
  fence_token fence;     // of raise
  spi::claim_id from{};  // of transfer, to the claim
  std::optional<spi::server_time> not_after;
  spi::resource_id resource;  // of a latch
  spi::latch_change latch;
};
using request_ptr = std::shared_ptr<const request>;

using reply_value = std::variant<error, spi::outcome, spi::departure, std::vector<spi::renewal>,
                                 spi::granted, spi::armed, spi::latch_state>;

struct reply {
  std::uint64_t operation = 0;
  reply_value value;
  spi::server_time at{};
};

inline answer kind_of(const result<spi::outcome>& outcome) noexcept {
  if (!outcome) return outcome.error() == errc::unavailable ? answer::unanswered : answer::refused;
  if (std::holds_alternative<spi::granted>(*outcome)) return answer::granted;
  return std::get<spi::blocked>(*outcome).queued ? answer::queued : answer::turned_away;
}

// On the subscription: a push of the ledger, or the news that a latch changed.
using push_value = std::variant<memory::push, spi::resource_id>;

}  // namespace holdfast::sim
