// The inside of a client: its runtime, its engine, and how callbacks reach the user.
//
// Shutdown: close() first (nobody waits, nothing is held), then the engine, then the runtime.
#pragma once

#include "core/engine.hpp"
#include "primitives/wait_registry.hpp"

#include <holdfast/client.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast {

struct client::state {
  state(std::shared_ptr<spi::reactor> with, std::shared_ptr<spi::store> store,
        client_options given);
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state();

  std::vector<std::string> close();
  // Runs user code on the executor; what it throws is swallowed and raised as an event.
  void deliver(spi::task work) const;
  [[nodiscard]] spi::op_context soon() const;
  // invalid and cancelled are answered at once.
  void inspect(const std::string& name, spi::completion<resource_state> done) const;

  const client_options options;
  const std::shared_ptr<spi::reactor> runtime;
  const std::shared_ptr<core::engine> engine;
  wait_registry waits;
};

}  // namespace holdfast
