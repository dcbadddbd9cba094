// The agenda: when must each claim or acquisition be looked at next? One ordered list and one timer
// of the runtime, however many items there are.
//
// Thread-safe. due() is called under no lock, possibly earlier than asked for and possibly once
// after drop(): items look at the time themselves and ask again.
#pragma once

#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::core {

class agenda_item {
 public:
  virtual ~agenda_item() = default;
  virtual void due(time_point now) = 0;
  // A batch of renewals is about to be sent: join it if yours would follow before `horizon`.
  virtual void join(time_point now, time_point horizon) {
    static_cast<void>(now);
    static_cast<void>(horizon);
  }

 private:
  friend class agenda;
  // Changed under the agenda's mutex. drop() of an item that is not listed takes no lock: a thread
  // that lists the item at that moment checks afterwards whether it is still wanted.
  std::atomic<bool> listed_{false};
  std::pair<time_point, std::uint64_t> key_{};  // guarded by the agenda's mutex
};

class agenda : public std::enable_shared_from_this<agenda> {
 public:
  explicit agenda(spi::runtime& runtime) : runtime_(runtime) {}
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;

  // Calls item->due() at `when`, or earlier if it is listed for earlier already.
  void schedule(const std::shared_ptr<agenda_item>& item, time_point when);
  void drop(agenda_item& item) noexcept;

  // Runs after the due items of a moment have been called.
  void on_swept(spi::task hook) { swept_ = std::move(hook); }
  // Lets the items that are listed up to `horizon` join a batch.
  void gather(time_point now, time_point horizon);

  // No item is called any more.
  void stop() noexcept;

  [[nodiscard]] std::size_t size() const;

 private:
  using list = std::map<std::pair<time_point, std::uint64_t>, std::shared_ptr<agenda_item>>;

  void sweep(std::uint64_t round);
  void arm(std::unique_lock<std::mutex>& lock);
  std::vector<std::shared_ptr<agenda_item>> take_until(time_point moment);

  spi::runtime& runtime_;
  spi::task swept_;

  mutable std::mutex mutex_;
  list items_;                            // guarded
  list::node_type spare_;                 // guarded; of the last dropped item, for the next
  std::uint64_t next_sequence_ = 1;       // guarded
  time_point armed_ = time_point::max();  // guarded
  spi::runtime::timer_id timer_ = 0;      // guarded
  std::uint64_t round_ = 0;               // guarded; which timer was armed last
  bool stopped_ = false;                  // guarded
};

}  // namespace holdfast::core
