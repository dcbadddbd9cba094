// A checker: one guarantee, watched over the whole history of a world. Small, and given nothing but
// records, so that each can be tested with a hand-written history.
#pragma once

#include "sim/record.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sim {

enum class resource_kind : std::uint8_t { mutex, shared, semaphore, latch };

// What a checker may know about a world in advance.
struct facts {
  struct resource {
    resource_kind kind = resource_kind::mutex;
    std::uint32_t max = 1;  // permits
  };
  std::vector<resource> resources;
  duration waiter_lease{};
  // Nothing disturbs this world: pushes and answers arrive.
  bool calm = false;
  duration round_trip{};  // the longest without trouble, timers' lateness included
  duration recheck{};     // the longest time a waiter goes without asking again
  duration recovery{};    // after a trouble has ended, until everybody has recovered
  duration lateness{};    // how late a timer or a notice may be
  duration turn{};  // how long after its grant a client may keep a claim for its returning callers
};

struct violation {
  std::string_view checker;
  moment at{};
  std::string message;
  std::vector<std::int32_t> holds{};  // the holds that show it, if it is about holds
};

class checker {
 public:
  explicit checker(const facts& world) : facts_(world) {}
  checker(const checker&) = delete;
  checker& operator=(const checker&) = delete;
  virtual ~checker() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual void see(const record& line) = 0;
  // The world is over and at rest.
  virtual void finish(moment now) { static_cast<void>(now); }

  // The first one only: what comes after a broken guarantee means little.
  [[nodiscard]] const std::optional<violation>& found() const noexcept { return found_; }

  void fail(moment at, std::string message, std::vector<std::int32_t> holds = {}) {
    if (!found_) found_ = violation{name(), at, std::move(message), std::move(holds)};
  }

 protected:
  [[nodiscard]] const facts& world() const noexcept { return facts_; }

 private:
  const facts& facts_;
  std::optional<violation> found_;
};

}  // namespace holdfast::sim
