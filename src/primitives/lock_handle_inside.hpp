// The inside of a lock handle, for the primitives.
#pragma once

#include "core/engine.hpp"
#include "core/local_queue.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/detail/lock_handle.hpp>

#include <memory>

namespace holdfast::detail {

struct lock_handle::inside {
  std::shared_ptr<holdfast::client::state> client;
  spi::resource_id resource;
  lock_options options;
  lock_handle_terms terms;
  std::shared_ptr<core::local_queue> local_queue;

  [[nodiscard]] core::request request(const acquire_options& how) const;
};

}  // namespace holdfast::detail
