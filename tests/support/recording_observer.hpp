// An observer that remembers its events.
#pragma once

#include "support/eventually.hpp"

#include <holdfast/observer.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::test {

// Thread-safe.
class recording_observer final : public observer {
 public:
  struct record {
    event_kind kind{};
    std::string name;
    std::string claim;
    fence_token fence;
    duration took{};
    std::string cause;
  };

  void on_event(const event& event) override {
    const std::lock_guard lock(mutex_);
    records_.push_back({event.kind, std::string(event.name), std::string(event.claim), event.fence,
                        event.took, event.cause != nullptr ? event.cause->message() : ""});
  }

  [[nodiscard]] std::vector<record> all(event_kind kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<record> found;
    for (const record& each : records_) {
      if (each.kind == kind) found.push_back(each);
    }
    return found;
  }

  [[nodiscard]] bool sees(event_kind kind, std::size_t times = 1) const {
    return eventually([&] { return all(kind).size() >= times; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<record> records_;  // guarded by mutex_
};

}  // namespace holdfast::test
