// The watched descriptors by id. Ids are never used again: an event that the kernel reported for a
// watch that has ended since finds nothing here, even if the descriptor's number lives on.
#pragma once

#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

namespace holdfast::runtime {

struct watch {
  const int fd;
  bool readable;
  bool writable;
  spi::function<void(spi::readiness)> on_ready;
  std::thread::id runner;  // the thread that is inside on_ready
  bool running = false;
  bool awaited = false;  // somebody waits for on_ready to return
  bool ended = false;

  // Without what is no longer asked for; false if nothing is left to tell.
  [[nodiscard]] bool concerns(spi::readiness& readiness) const noexcept {
    readiness.readable = readiness.readable && readable;
    readiness.writable = readiness.writable && writable;
    return readiness.readable || readiness.writable || readiness.hung_up;
  }
};

// Not thread-safe. Watches are shared, since one may end itself from within its on_ready.
class watch_table {
 public:
  using watch_id = spi::reactor::watch_id;

  explicit watch_table(watch_id first) noexcept : next_(first) {}

  watch_id add(int fd, bool readable, bool writable, spi::function<void(spi::readiness)> on_ready) {
    auto made = std::make_shared<watch>(
        watch{fd, readable, writable, std::move(on_ready), {}, false, false, false});
    watches_.emplace(next_, std::move(made));
    return next_++;
  }
  // Null if there is none.
  [[nodiscard]] std::shared_ptr<watch> find(watch_id id) const {
    const auto found = watches_.find(id);
    return found == watches_.end() ? nullptr : found->second;
  }
  std::shared_ptr<watch> take(watch_id id) noexcept {
    const auto found = watches_.find(id);
    if (found == watches_.end()) return nullptr;
    std::shared_ptr<watch> taken = std::move(found->second);
    watches_.erase(found);
    return taken;
  }

  [[nodiscard]] std::size_t size() const noexcept { return watches_.size(); }

 private:
  std::unordered_map<watch_id, std::shared_ptr<watch>> watches_;
  watch_id next_;
};

}  // namespace holdfast::runtime
