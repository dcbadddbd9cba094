// The queue of a lock, from a list of children, and the lists that claims of one client share.
#pragma once

#include "stores/zookeeper/names.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <coroutine>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

// Which of the children in a list holds, and which one each of the others waits for. Pure: the
// whole grant rule of locks on ZooKeeper.
class line {
 public:
  // Children that are not claims are left out; the functions below report them.
  explicit line(const std::vector<std::string>& children);

  [[nodiscard]] const std::vector<claim_node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] bool has_semaphore() const noexcept { return semaphore_; }  // perhaps an empty one
  [[nodiscard]] bool has_latch() const noexcept { return latch_; }          // perhaps an old one

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t find(const std::string& name) const;
  // By the claim's id; of two (a downgrade) the later.
  [[nodiscard]] std::size_t find(const spi::claim_id& id) const noexcept;

  // The place of the claim that this one waits for; none: it holds. A reader waits for the last
  // writer before it, any other claim for the one right before it.
  [[nodiscard]] std::size_t blocker_of(std::size_t place) const noexcept;
  // The blocker of a new last claim.
  [[nodiscard]] std::size_t blocker_of_next(bool excludes) const noexcept;
  [[nodiscard]] bool holds(std::size_t place) const noexcept { return blocker_of(place) == none; }
  // Nobody can hold beside the claim at this place: a reader that holds, or the writer that it is to
  // become. Whoever is before it holds: only the first becomes a writer. So a writer behind it has
  // always been one, and waits, as all behind that one do.
  [[nodiscard]] bool alone(std::size_t place) const noexcept;
  // Somebody waits behind the claim at this place, which holds.
  [[nodiscard]] bool wanted(std::size_t place) const noexcept;

 private:
  [[nodiscard]] std::size_t blocker(std::size_t place, bool excludes) const noexcept;

  std::vector<claim_node> nodes_;           // in order
  std::vector<std::size_t> last_excluder_;  // before each place, and before the end
  bool semaphore_ = false;
  bool latch_ = false;
};

using line_ptr = std::shared_ptr<const line>;

// Reads one list of a folder at a time, for all claims of a client that need one. Without this,
// thousands that join one queue at once read as many lists of thousands, and the proof that the
// session lives waits behind these.
//
// Thread-safe. Resumes flows under no lock.
class listings {
 public:
  // With the session: its reads are ordered only among its own requests.
  using folder = std::pair<std::shared_ptr<session>, std::string>;
  using answer = result<line_ptr>;

  // No list is on its way: the caller sends one now and calls finished(), whatever happens.
  [[nodiscard]] bool start(const folder& which);

  // Waits for a list that is sent after this call: the answer to another claim's, or none: the
  // caller sends it, for all that wait by then, and calls finished().
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

  // The list that is sent now serves all that wait.
  void sending(const folder& which);
  // Passes the answer to all that it serves. Of those who came since, the one with the most time
  // left sends the next list: one whose time runs out must not make it fail for the others.
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
