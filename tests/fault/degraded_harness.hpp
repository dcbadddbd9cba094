// A client whose connection to its engine can be cut, behind a breaker and with or without a local
// fallback; and clients that reach the engine directly.
#pragma once

#include "stores/degraded/open_degraded.hpp"
#include "stores/memory/memory_store.hpp"
#include "stores/table.hpp"
#include "support/eventually.hpp"
#include "support/lossy_store.hpp"
#include "support/recording_observer.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {

using namespace std::chrono_literals;

class degraded_harness {
 public:
  // `options`: as in a URL, "breaker=3".
  explicit degraded_harness(const std::string& options, bool observed = true) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    static int worlds = 0;  // a repetition finds nothing of the one before
    name_ = std::string("memory:outage.") + test->name() + "." + std::to_string(++worlds);
    spi::url url = spi::parse_url(name_ + "?breaker_pause=20ms&" + options).value();
    const auto runtime = spi::make_reactor();
    const auto degraded_options = degraded::take_options(url).value();
    way_ = std::make_shared<lossy_store>(runtime, stores::open(url, runtime).value());
    auto local = stores::open(spi::parse_url("memory:").value(), runtime).value();
    client_options own;
    if (observed) own.observer = seen_;
    own.close_within = 100ms;
    own.hand_over_locally = false;
    client_.emplace(client::open(runtime,
                                 degraded::wrap(degraded_options, way_, std::move(local), runtime),
                                 own)
                        .value());
  }

  [[nodiscard]] client& guarded() { return *client_; }
  [[nodiscard]] client direct() const { return client::open(name_).value(); }
  [[nodiscard]] lossy_store& way() { return *way_; }
  [[nodiscard]] const recording_observer& seen() const { return *seen_; }

  // Tries until the breaker opens.
  void cut_off() {
    way_->set(trouble::no_request);
    // A late answer would be a sign of life: the engine is back, and degraded leases are lost.
    EXPECT_TRUE(eventually([&] { return way_->under_way() == 0; }));
    mutex probe(*client_, "probe");
    EXPECT_TRUE(eventually([&] {
      static_cast<void>(probe.acquire({.wait = 0s}));
      return !seen_->all(event_kind::engine_unreachable).empty();
    }));
  }
  void restore() {
    way_->set(trouble::none);
    EXPECT_TRUE(seen_->sees(event_kind::engine_back));
  }

 private:
  std::string name_;
  std::shared_ptr<recording_observer> seen_ = std::make_shared<recording_observer>();
  std::shared_ptr<lossy_store> way_;
  std::optional<client> client_;
};

}  // namespace holdfast::test
