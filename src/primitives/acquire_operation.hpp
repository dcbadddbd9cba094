// One asynchronous acquisition: joins the core's acquisition, the caller's stop token, and the receiver
// of the answer.
#pragma once

#include "core/acquisition.hpp"
#include "primitives/client_state.hpp"
#include "primitives/operation.hpp"

#include <holdfast/detail/lock_handle.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast::detail {

// Thread-safe.
class acquire_operation final : public client_operation<lease> {
 public:
  acquire_operation(const std::shared_ptr<client::state>& client, core::request request,
                    std::stop_token token);

  void cancel() noexcept override;

 private:
  struct cancel_on_stop {
    std::weak_ptr<core::acquisition> acquisition;
    void operator()() const noexcept;
  };

  void begin() override;
  void answered(result<std::shared_ptr<core::hold>> answer);

  const std::shared_ptr<core::engine> engine_;
  core::request request_;
  std::stop_token token_;

  std::mutex mutex_;
  std::shared_ptr<core::acquisition> acquisition_;  // guarded by mutex_
  bool answered_ = false;                           // guarded by mutex_
  bool cancelled_ = false;                          // guarded by mutex_
  // Touched by begin() only.
  std::optional<std::stop_callback<cancel_on_stop>> on_stop_;
};

}  // namespace holdfast::detail
