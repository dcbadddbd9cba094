// One list of a folder on its way at a time, for all claims of a client that need one. Without this,
// thousands that join one line at once read as many lists of thousands, and the proof that the
// session lives waits behind them.
#pragma once

#include "stores/zookeeper/line.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <coroutine>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

using line_ptr = std::shared_ptr<const line>;

// Thread-safe. Resumes flows under no lock.
class listings {
 public:
  // Whose folder: what one session reads is in the order of its own requests only.
  using folder = std::pair<std::shared_ptr<session>, std::string>;
  using answer = result<line_ptr>;

  // No list is on its way: the caller sends one now and says finished(), whatever comes.
  [[nodiscard]] bool start(const folder& which);

  // Waits for a list that is sent after this: the answer of another's, or none: the caller sends it,
  // for all who wait by then, and says finished().
  class turn {
   public:
    turn(listings& all, const folder& which, time_point deadline)
        : all_(all), which_(which), deadline_(deadline) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> then);
    [[nodiscard]] std::optional<answer> await_resume() { return std::move(answer_); }

   private:
    friend class listings;
    listings& all_;
    const folder& which_;
    const time_point deadline_;
    std::coroutine_handle<> then_;
    std::optional<answer> answer_;
  };

  // The list that is sent now serves all who wait.
  void sending(const folder& which);
  // It was answered: to those it serves. The next one is sent by the one with the most time left of those who
  // came since: one whose time runs out must not fail it for the others.
  void finished(const folder& which, const answer& what);

 private:
  struct waiting {
    std::vector<turn*> served;  // by the list that is on its way
    std::vector<turn*> next;
  };

  std::mutex mutex_;
  std::map<folder, waiting> under_way_;  // guarded by mutex_
};

}  // namespace holdfast::zookeeper
