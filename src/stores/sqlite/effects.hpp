// What one transaction causes beside its answer: messages to other claims, news for observers.
// Delivered in order, after the commit, when nothing is held any more.
#pragma once

#include "stores/sqlite/folder.hpp"
#include "stores/sqlite/rows.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace holdfast::sqlite {

struct push {
  enum class kind : std::uint8_t { granted, freed, wanted, gone };
  kind what = kind::freed;
  std::int64_t client = 0;
  spi::claim_id claim;
  spi::granted grant{};
  std::string why;
};

// Of one resource.
struct news {
  std::string key;
  std::vector<spi::store_event> events;
  bool latch_changed = false;
  std::vector<std::int64_t> observers;
};

struct effects {
  std::vector<push> pushes;
  std::vector<sqlite::news> news;
  // Clients that the claim which was attempted waits for: it wants to know when they die.
  std::vector<std::int64_t> blockers;
};

// One transaction: when it happens, who speaks, and of whom it is known that they are dead.
struct moment {
  instant now = 0;
  std::int64_t self = 0;
  const std::set<std::int64_t>& dead;
  effects& out;
  // The claim that speaks: it is answered, not pushed to.
  const spi::claim_id* claim = nullptr;
  // Where the clients' last words are; nullptr: nobody is asked for one.
  const folder* beside = nullptr;
};

}  // namespace holdfast::sqlite
