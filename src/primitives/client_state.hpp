// The inside of a client: its runtime, its engine, and how callbacks reach the user.
//
// Shutdown: close() first (nobody waits, nothing is held), then the engine, then the runtime.
#pragma once

#include "core/blame.hpp"
#include "core/engine.hpp"
#include "primitives/wait_registry.hpp"

#include <holdfast/client.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

struct client::state {
  static constexpr duration operator_limit = std::chrono::seconds(5);

  state(std::shared_ptr<spi::reactor> with, std::shared_ptr<spi::store> store, client_options given,
        core::engine_settings settings);
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state();

  // `within`: instead of the client's own.
  std::vector<std::string> close(std::optional<duration> within = {});
  // Runs user code on the executor; what it throws is swallowed and raised as an event.
  void deliver(spi::task work) const;
  // For a call that somebody waits for: a failed connection is the answer.
  [[nodiscard]] spi::op_context soon(duration limit = operator_limit) const;
  // invalid and cancelled are answered at once.
  void inspect(const std::string& name, spi::completion<resource_state> done) const;
  // The answer of a call about a name, or about none, with what failed.
  template <class T>
  result<T> told(result<T> answer, std::string_view verb, std::string_view name) const {
    if (answer) return answer;
    return tl::unexpected(
        core::blamed(std::move(answer.error()), engine->settings().where, verb, name));
  }

  const client_options options;
  const std::shared_ptr<spi::reactor> runtime;
  const std::shared_ptr<core::engine> engine;
  wait_registry waits;
};

}  // namespace holdfast
