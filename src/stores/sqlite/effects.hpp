// What one transaction causes beside its answer: messages to other claims, news for observers.
// Delivered in order, after the commit, when nothing is held any more.
#pragma once

#include "stores/ledger/records.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sqlite {

using ledgers::moment;
using ledgers::push;

// Of one resource.
struct news {
  std::string key;
  std::vector<spi::store_event> events;
  bool latch_changed = false;
  std::vector<std::int64_t> observers;
};

struct effects : ledgers::effects {
  std::vector<sqlite::news> news;
  // Clients that the claim which was attempted waits for: it wants to know when they die.
  std::vector<std::int64_t> blockers;
};

}  // namespace holdfast::sqlite
