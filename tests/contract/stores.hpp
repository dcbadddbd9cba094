// The stores that the contract tests run on: every behaviour is written once and holds on each.
#pragma once

#include <holdfast/client.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::test {

// One engine with nothing in it. Every client opened by its URL sees what another process would.
struct fresh_engine {
  std::string url;
  std::shared_ptr<const void> keep;  // a folder, a server: removed with the last user
};

// Which flavours of locks a store tells apart, so that `make test` runs it with them; `make test-long` runs all.
enum class needs : std::uint8_t {
  roles,  // all: to most stores a writer and a leader are mutexes, but not to this one
  rules,  // mutexes, fair ones, permits
  mutex,  // it has the rules of another, and reaches them by scripts or at several servers
};

struct store_setup {
  std::string name;
  std::function<fresh_engine()> make;
  needs flavours = needs::rules;

  friend std::ostream& operator<<(std::ostream& out, const store_setup& setup) {
    return out << setup.name;
  }
};

// All that were built in. A line in stores.cpp adds a store to the suite.
const std::vector<store_setup>& store_setups();

}  // namespace holdfast::test
