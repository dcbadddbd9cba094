// A command of a connection that is not answered yet, and the queue of such.
#pragma once

#include "net/patience.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::redis {

class script;

struct pending {
  // How often it goes once more because the server does not know its script.
  static constexpr std::uint8_t reload_limit = 3;
  // Sent ahead of a command, for it. Nobody waits for the answer.
  enum class ahead : std::uint8_t { no, library, asking };

  spi::completion<reply> done{};
  net::patience until{};
  std::uint32_t replies = 1;      // still to come
  std::vector<reply> gathered{};  // of a command with several
  std::optional<command> kept{};  // where it may be sent later, or once more
  bool sent = false;              // on some link, perhaps one that is gone
  bool again = false;             // sent after a quiet time: may be sent once more
  std::uint8_t reloads = 0;       // left
  bool asking = false;            // goes behind ASKING
  ahead is_ahead = ahead::no;
  const script* runs = nullptr;    // or null
  std::vector<pending> members{};  // of a batch, which has no completion of its own

  // What it counts for.
  [[nodiscard]] std::size_t size() const noexcept { return members.empty() ? 1 : members.size(); }
};

// First in, first out. The memory of some that have left is used again: each thread's command is put
// here by that thread, and taken out by another.
class pending_queue {
 public:
  using iterator = std::list<pending>::iterator;
  using const_iterator = std::list<pending>::const_iterator;

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] pending& front() noexcept { return all_.front(); }
  [[nodiscard]] iterator begin() noexcept { return all_.begin(); }
  [[nodiscard]] iterator end() noexcept { return all_.end(); }
  [[nodiscard]] const_iterator begin() const noexcept { return all_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return all_.end(); }

  void push_back(pending&& one) {
    if (spare_.empty()) {
      all_.push_back(std::move(one));
    } else {
      spare_.front() = std::move(one);
      all_.splice(all_.end(), spare_, spare_.begin());
    }
  }
  // Both of a queue that is not empty.
  [[nodiscard]] pending take_front() {
    pending first = std::move(all_.front());
    drop_front();
    return first;
  }
  void drop_front() noexcept {
    if (spare_.size() < kept) {
      spare_.splice(spare_.begin(), all_, all_.begin());
    } else {
      all_.pop_front();
    }
  }
  template <class Which>
  void erase_if(Which which) {
    all_.remove_if(std::move(which));
  }
  void clear() noexcept { all_.clear(); }

 private:
  static constexpr std::size_t kept = 64;

  std::list<pending> all_;
  std::list<pending> spare_;  // what is left of them ends when they are used again
};

}  // namespace holdfast::redis
