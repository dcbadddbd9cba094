// How long a call to a server is waited for, and who goes first where calls wait for each other.
#pragma once

#include "net/patience.hpp"
#include "stores/sql/renewal_batch.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace holdfast::sql {

struct terms : net::patience {
  terms(time_point by) : patience(by), useful_until(by) {}
  terms(const net::patience& how) : patience(how), useful_until(how.deadline) {}
  terms(const spi::op_context& context)
      : patience(context), useful_until(std::max(context.deadline, context.useful_until)) {}

  // Of those who hold already: before all who ask.
  [[nodiscard]] static terms ahead_of_others(const spi::op_context& context) {
    terms made(context);
    made.ahead = true;
    return made;
  }

  // The server has answered it after it was at it for so long.
  void worked(duration time) const noexcept {
    if (pace) pace->took(time, claims, allowed);
  }

  time_point useful_until;  // where the server has answered others since
  bool ahead = false;
  std::shared_ptr<renewal_pace> pace{};  // of renewals: is told how long they take
  std::size_t claims = 0;
  duration allowed{};
};

}  // namespace holdfast::sql
