// Fair claims are granted in the order in which the server first saw them. Excused is who cannot be
// reached, who let an offer run out and was not heard since, and whose waiter's lease has ended.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class fifo final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "FIFO"; }

  void see(const record& line) override;

 private:
  struct waiter {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    std::uint64_t place = 0;
    bool fair = false;
    bool uncertain = false;  // whether this is its place
    moment heard{};
  };
  struct offer {
    std::int32_t process = nobody;
    moment until{};
  };

  void granted(const record& line);
  [[nodiscard]] bool lapsed(const waiter& each, moment now) const;
  [[nodiscard]] bool excused(const waiter& earlier, moment now) const;

  std::map<std::int32_t, waiter> waiters_;  // by claim
  std::map<std::int32_t, offer> offers_;    // by claim: granted by a push and not heard of since
  std::map<std::int32_t, moment> heard_;    // by process
  std::set<std::int32_t> unreachable_;
  std::uint64_t next_place_ = 1;
  bool void_ = false;  // the server's clock was set: who still lives is not known
};

}  // namespace holdfast::sim
