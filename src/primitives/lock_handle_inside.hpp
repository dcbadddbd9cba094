// The inside of a lock handle, for the primitives.
#pragma once

#include "core/engine.hpp"
#include "core/local_queue.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/detail/lock_handle.hpp>

#include <memory>

namespace holdfast::detail {

struct lock_handle::inside {
  inside() = default;
  // Its options' payload is its own text.
  inside(const inside& other)
      : client(other.client),
        resource(other.resource),
        options(other.options),
        terms(other.terms),
        local_queue(other.local_queue) {
    options.payload = terms.payload;
  }
  inside& operator=(const inside&) = delete;
  ~inside() = default;

  std::shared_ptr<holdfast::client::state> client;
  spi::resource_id resource;
  lock_options options;
  lock_handle_terms terms;
  std::shared_ptr<core::local_queue> local_queue;

  [[nodiscard]] core::request request(const acquire_options& how) const;
};

}  // namespace holdfast::detail
