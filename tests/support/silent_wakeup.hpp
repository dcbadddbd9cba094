// The wakeup of a claim whose pushes do not matter to a test.
#pragma once

#include <holdfast/spi/store.hpp>

#include <optional>

namespace holdfast::test {

class silent_wakeup final : public spi::wakeup {
 public:
  void notify(std::optional<spi::granted>) noexcept override {}
  void wanted() noexcept override {}
  void gone(const error&) noexcept override {}
};

}  // namespace holdfast::test
