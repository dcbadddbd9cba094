// One asynchronous acquisition in the hands of user code: joins the core's acquisition, the
// caller's stop token, and whoever waits for the answer.
//
// Thread-safe. The answer is delivered once, on the client's executor; after abandon() never, and a
// grant that comes then is given back.
#pragma once

#include "core/acquisition.hpp"
#include "primitives/client_state.hpp"

#include <holdfast/detail/seeker.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast::detail {

class pursuit : public std::enable_shared_from_this<pursuit> {
 public:
  pursuit(std::shared_ptr<client::state> client, core::request request, std::stop_token token);

  void start(acquire_callback done);
  // Nobody waits for the answer any more.
  void abandon() noexcept;

 private:
  struct cancel_on_stop {
    std::weak_ptr<core::acquisition> acquisition;
    void operator()() const noexcept;
  };

  void arrived(result<std::shared_ptr<core::hold>> answer);

  const std::shared_ptr<client::state> client_;
  core::request request_;
  std::stop_token token_;

  std::mutex mutex_;
  acquire_callback done_;                           // guarded by mutex_
  std::shared_ptr<core::acquisition> acquisition_;  // guarded by mutex_
  bool answered_ = false;                           // guarded by mutex_
  // Touched by start() and, after it has returned, by arrived().
  std::optional<std::stop_callback<cancel_on_stop>> on_stop_;
};

}  // namespace holdfast::detail
