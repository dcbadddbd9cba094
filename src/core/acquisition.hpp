// An acquisition: one request, from the call to its single answer. It waits in the local queue of its name
// or pursues a claim of its own.
//
// States: waiting at the local queue -> pursuing -> answered; cancel() and the deadline answer from any.
#pragma once

#include "core/agenda.hpp"
#include "core/engine.hpp"

#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>

namespace holdfast::core {

class claim_runner;
class local_queue;
class hold;

class acquisition : public agenda_item, public std::enable_shared_from_this<acquisition> {
 public:
  acquisition(std::shared_ptr<engine> engine, request&& request, time_point now,
              std::shared_ptr<local_queue> local_queue,
              spi::completion<std::shared_ptr<hold>> done);
  ~acquisition() override;

  void start();

  // Answers `cancelled` if there is no answer yet. Whatever the engine may have been asked for is
  // withdrawn in the background, never under the caller's token. Thread-safe; may be called from
  // anywhere, also from within a stop callback.
  void cancel() noexcept;

  void due(time_point now) override;

  [[nodiscard]] const core::request& wanted() const noexcept { return request_; }

  // From the local queue: its turn has come, with a claim of its own or with its predecessor's
  // claim. take_over: false if there is an answer already, or the claim is lost.
  void pursue();
  bool take_over(const std::shared_ptr<claim_runner>& runner, fence_token fence);
  // From the local queue, when the client is closed.
  void give_up(error why);
  // From the runner of its claim.
  void settled(const std::shared_ptr<claim_runner>& runner, result<fence_token> outcome,
               time_point now);

  std::uint64_t sequence = 0;  // in the local queue

 private:
  bool answer(result<std::shared_ptr<hold>> outcome);
  void count(const result<std::shared_ptr<hold>>& outcome);
  void fail(error why);

  const std::shared_ptr<engine> engine_;
  const request request_;
  const time_point started_;
  const time_point deadline_;
  const std::shared_ptr<local_queue> local_queue_;  // null: bypasses it

  std::mutex mutex_;
  spi::completion<std::shared_ptr<hold>> done_;  // guarded by mutex_; empty once answered
  std::shared_ptr<claim_runner> runner_;         // guarded by mutex_; while pursuing
  bool cancelled_ = false;                       // guarded by mutex_
};

}  // namespace holdfast::core
