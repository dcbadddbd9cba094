// The inside of a lock handle, and how it is acquired, for the primitives.
#pragma once

#include "core/acquisition.hpp"
#include "core/engine.hpp"
#include "core/local_queue.hpp"
#include "primitives/client_state.hpp"
#include "primitives/operation.hpp"

#include <holdfast/detail/lock_handle.hpp>

#include <memory>
#include <mutex>
#include <stop_token>

namespace holdfast::detail {

struct lock_handle::inside {
  inside() = default;
  // The payload of its options refers to its own text.
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

// Waits for the answer. would_deadlock on the client's own threads.
result<lease> acquire_now(const client::state& client, core::request request,
                          std::stop_token token);

// One asynchronous acquisition: joins the core's acquisition, the caller's stop token, and the
// receiver of the answer. Thread-safe.
class acquire_operation final : public client_operation<lease> {
 public:
  acquire_operation(const std::shared_ptr<client::state>& client, core::request request,
                    std::stop_token token);

 private:
  void begin() override;
  void stop() noexcept override;
  void answered(result<std::shared_ptr<core::hold>> answer);

  const std::shared_ptr<core::engine> engine_;
  core::request request_;
  std::stop_token token_;

  std::mutex mutex_;
  std::shared_ptr<core::acquisition> acquisition_;  // guarded by mutex_
  bool answered_ = false;                           // guarded by mutex_
  stop_cancels<core::acquisition> on_stop_;         // touched by begin() only
};

}  // namespace holdfast::detail
