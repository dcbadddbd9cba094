// The attempt window of a client: how many attempts may be on their way to the engine at once. A
// client that asks for ten thousand locks must not fill the engine's queue with attempts: the
// renewals of what it holds would wait behind them, and be answered too late. What does not fit
// waits here, unsent, without a deadline of its own.
//
// The window follows the answers: it grows while attempts are answered within a fraction of the
// shortest deadline that depends on the engine, and is halved when they are not. Releases need a
// slot too, and get the next one that is free. Renewals bypass the window, and their time is taken
// from new claims: after a large batch has kept the engine busy for a while, no new claim is sent
// for as long again, nor while such a batch has been on its way for longer than an answer may take.
// So the renewals of everything that a client holds take at most half of the engine's time; a
// client that holds that much is granted no more.
// Releases go first, then claims that the engine knows already (woken, offered a lock, at their
// deadline), then all others, each group in order of arrival.
//
// Thread-safe; calls window_item under no lock.
#pragma once

#include "core/agenda.hpp"
#include "core/limits.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace holdfast::core {

// Who goes first.
enum class precedence : std::uint8_t { release, known, fresh };

class window_item {
 public:
  // The period in which it was sent; 0: not sent.
  using slot = std::uint64_t;

  virtual ~window_item() = default;
  // Its turn has come: it sends what it has, or gives the slot back. `usual`: how long answers take.
  virtual void admitted(slot taken, duration usual) = 0;

 private:
  friend class attempt_window;
  // Guarded by the window's mutex; second 0: not queued.
  std::pair<precedence, std::uint64_t> place_{};
};

// Which ttls the live claims have: all deadlines follow from the shortest. Changed under the
// engine's lock, read without.
class ttl_census {
 public:
  void add(duration ttl) noexcept;
  void remove(duration ttl) noexcept;
  // At most a fifth below the shortest; max: there is none.
  [[nodiscard]] duration shortest() const noexcept {
    return duration(shortest_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::size_t classes = 128;  // four for each power of two, in milliseconds
  static std::size_t class_of(duration ttl) noexcept;
  static duration least_of(std::size_t index) noexcept;

  std::array<std::uint32_t, classes> counts_{};
  std::size_t all_ = 0;
  std::size_t lowest_ = classes;
  std::atomic<duration::rep> shortest_{duration::max().count()};
};

class attempt_window final : public agenda_item,
                             public std::enable_shared_from_this<attempt_window> {
 public:
  attempt_window(std::shared_ptr<agenda> schedule, const ttl_census& census, const limits& limit);

  using slot = window_item::slot;

  // A slot: to be sent now, and answered() is called with it later. 0: it is queued.
  slot enter(const std::shared_ptr<window_item>& who, precedence rank, time_point now);
  // Removes it from the queue, if it is there.
  void withdraw(window_item& who) noexcept;
  // `usable`: an answer, whatever it says. Lets others in.
  void answered(slot taken, time_point sent_at, time_point now, bool usable);
  // Nothing was sent.
  void give_back(slot taken, time_point now);
  // A batch of renewals leaves now. What it returns is for renewed().
  struct renewal_start {
    time_point at;
    std::uint64_t answers;  // before it
  };
  [[nodiscard]] renewal_start renewing(time_point now, std::size_t claims);
  // A batch of so many claims was answered, except for `unknown` of them.
  void renewed(const renewal_start& began, time_point now, std::size_t claims, std::size_t unknown);
  // Why an item that waits here was not sent.
  [[nodiscard]] error reason() const;

  void due(time_point now) override;
  void stop() noexcept;

  // For tests.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t waiting() const;

 private:
  using line = std::map<std::pair<precedence, std::uint64_t>, std::shared_ptr<window_item>>;
  using mutex_lock = std::unique_lock<std::mutex>;

  void pump(mutex_lock& lock, time_point now);
  void roll(time_point now);
  void drop(slot taken) noexcept;
  void shrink(time_point sent_at, time_point now) noexcept;
  void note(duration took, time_point now) noexcept;
  void measure(time_point sent_at, time_point now) noexcept;
  void start_over_after_rest(time_point now) noexcept;
  [[nodiscard]] bool room(precedence rank, time_point now) const noexcept;
  [[nodiscard]] bool overdue(time_point now) const noexcept;
  [[nodiscard]] duration way() const noexcept;
  [[nodiscard]] duration target() const noexcept;
  [[nodiscard]] std::size_t in_flight() const noexcept { return current_ + previous_; }

  const std::shared_ptr<agenda> agenda_;
  const ttl_census& census_;
  const limits limit_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  line waiting_;
  std::uint64_t next_place_ = 1;
  bool pumping_ = false;
  bool stopped_ = false;
  double window_;
  bool doubling_ = true;  // until it was too large for the first time
  time_point shrunk_at_ = time_point::min();
  // In flight, by period. Anything older than the previous period no longer counts: if one of many
  // servers is silent, it must not hold up the others.
  slot period_ = 2;
  time_point period_began_ = time_point::min();
  std::size_t current_ = 0;
  std::size_t previous_ = 0;
  time_point fresh_not_before_ = time_point::min();  // until then the engine's time is for renewals
  // The fastest answers of this interval and of the previous one: what the network costs without a
  // queue.
  duration fastest_ = duration::max();
  duration fastest_before_ = duration::max();
  time_point fastest_since_ = time_point::min();
  duration usual_{0};
  // How much of the engine's time an attempt or a release costs: the time between two answers,
  // where the second was on its way all that time and no renewal was.
  duration each_costs_{0};
  std::uint64_t answers_ = 0;                  // of attempts and releases
  time_point worked_at_ = time_point::min();   // the last of those
  time_point counted_at_ = time_point::min();  // the last one, also of a renewal
  std::size_t renewals_under_way_ = 0;         // batches
  std::multiset<time_point> many_since_;       // when the batches with many claims were sent
  bool one_silent_ = false;                    // of several servers, when the last such batch ended
  time_point last_answer_ = time_point::min();
  time_point last_silence_ = time_point::min();
};

}  // namespace holdfast::core
