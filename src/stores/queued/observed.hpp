// What observers are notified of: who came, was granted and ended between two looks at a name.
#pragma once

#include "stores/callback_guard.hpp"

#include <holdfast/fence.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::stores {

// Somebody who holds or waits.
struct observed_claim {
  std::string claim;  // as people are shown it
  spi::mode mode{};
  bool holds = false;
  bool forced = false;  // its end, when it comes, will be forced
  std::optional<fence_token> fence;
  std::string payload;
  std::string token{};  // where it is in the store
};
// By what made it (0: where that does not tell claims apart) and by claim: a claim that
// hands its place on has ended.
using observed_claims = std::map<std::pair<std::int64_t, std::string>, observed_claim>;

// The receiver of an observation. One event after the other; none after callbacks.end().
struct observer {
  spi::function<void(const spi::store_event&)> sink;  // only by callbacks
  callback_guard callbacks;

  explicit observer(spi::function<void(const spi::store_event&)> to) : sink(std::move(to)) {}

  void tell(spi::event_kind kind, const std::string& name, const observed_claim& who) {
    spi::store_event event;
    event.kind = kind;
    event.name = name;
    event.claim = who.claim;
    event.mode = who.mode;
    event.payload = who.payload;
    if (kind != spi::event_kind::queued && kind != spi::event_kind::withdrawn) {
      event.fence = who.fence;
    }
    callbacks.run([&] { sink(event); });
  }

  void tell_changes(const std::string& name, const observed_claims& before,
                    const observed_claims& now) {
    using spi::event_kind;
    for (const auto& [id, who] : before) {
      if (now.contains(id)) continue;
      tell(!who.holds   ? event_kind::withdrawn
           : who.forced ? event_kind::forced
                        : event_kind::released,
           name, who);
    }
    for (const auto& [id, who] : now) {
      const auto old = before.find(id);
      if (who.holds && (old == before.end() || !old->second.holds)) {
        tell(event_kind::granted, name, who);
      } else if (!who.holds && old == before.end()) {
        tell(event_kind::queued, name, who);
      }
    }
  }
};

}  // namespace holdfast::stores
