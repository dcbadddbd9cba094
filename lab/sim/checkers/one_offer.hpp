// A queue costs one offer, however many waiters in it are dead or paused: after an offer that
// nobody accepted, the resource is offered only to waiters that were heard from since it was made.
#pragma once

#include "sim/checker.hpp"
#include "sim/checkers/lapsed_offers.hpp"

namespace holdfast::sim {

class one_offer final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "one offer"; }

  void see(const record& line) override {
    if (line.kind == what::clock_jumped) void_ = true;
    if (void_) return;
    if (line.kind == what::server_granted && line.offer &&
        offers_.silent(line.claim, line.resource, line.at)) {
      fail(line.at, "resource " + std::to_string(line.resource) + " was offered to claim " +
                        std::to_string(line.claim) +
                        ", which had not spoken since an offer that nobody took up");
    }
    offers_.see(line);
  }

 private:
  lapsed_offers offers_;
  bool void_ = false;  // the server's clock was set: what has run out is not known
};

}  // namespace holdfast::sim
