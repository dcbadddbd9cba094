// An engine on a manual runtime, for tests: requests with their answers, and the events raised.
#pragma once

#include "core/acquisition.hpp"
#include "core/engine.hpp"
#include "core/hold.hpp"
#include "support/claim_script.hpp"
#include "support/fake_store.hpp"
#include "support/manual_runtime.hpp"
#include "support/times.hpp"

#include <holdfast/observer.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

// Records events: "granted stock", with the cause if there is one: "lost stock: lost".
class event_log final : public observer {
 public:
  void on_event(const event& event) override;

  // The lines since the last call, joined by ", ".
  std::string take();
  // How often a kind was raised.
  [[nodiscard]] std::size_t count(event_kind kind) const;

  std::vector<event_kind> kinds;
  std::vector<duration> took;
  std::vector<std::string> lines;
};

// One acquisition and its outcome.
struct question {
  std::shared_ptr<core::acquisition> handle;
  std::optional<error> refusal;
  std::shared_ptr<core::hold> granted;  // dropping it releases
  int answers = 0;

  [[nodiscard]] bool answered() const noexcept { return answers > 0; }
  // "waiting", "granted 7", "timed out", ...
  [[nodiscard]] std::string state() const;
};
using question_ptr = std::shared_ptr<question>;

// Not thread-safe. Whatever a test leaves open is closed when the bench ends.
class engine_bench {
 public:
  explicit engine_bench(core::engine_settings settings = {});
  // On a store that the test provides.
  engine_bench(std::shared_ptr<manual_runtime> runtime, std::shared_ptr<spi::store> store,
               core::engine_settings settings = {});
  ~engine_bench();
  engine_bench(const engine_bench&) = delete;
  engine_bench& operator=(const engine_bench&) = delete;

  question_ptr ask(core::request request);
  question_ptr ask(const std::string& name = "stock", duration wait = forever);
  // The oldest attempt is granted.
  bool grant(std::uint64_t fence, duration ttl = 30s) {
    return store->answer_attempt(test::granted(fence, ttl));
  }
  // Releases, and returns the answer: "ok", "lost", ..., "nothing yet".
  std::shared_ptr<std::string> release(const question& from);

  std::shared_ptr<manual_runtime> runtime;
  std::shared_ptr<fake_store> store;  // null on a store that the test provides
  std::shared_ptr<event_log> events = std::make_shared<event_log>();
  std::shared_ptr<core::engine> engine;
};

// An exclusive, unfair request with the usual options.
core::request request_for(const std::string& name, duration wait = forever);

}  // namespace holdfast::test
