// The inside of a seeker, for the primitives.
#pragma once

#include "core/engine.hpp"
#include "core/gate.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/detail/seeker.hpp>

#include <memory>

namespace holdfast::detail {

struct seeker::inside {
  std::shared_ptr<holdfast::client::state> client;
  spi::resource_id resource;
  lock_options options;
  seeker_terms terms;
  std::shared_ptr<core::gate> gate;

  [[nodiscard]] core::request wish(const acquire_options& how) const;
};

}  // namespace holdfast::detail
