// What ends at a reboot: the kernel's boot id, and the clock that started with it. Two processes
// can compare times of CLOCK_BOOTTIME only if they run under one boot and in one time namespace.
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>

namespace holdfast::sqlite {

struct host {
  std::string boot;                  // the kernel's boot id
  std::uint64_t time_namespace = 0;  // 0: the kernel has none

  friend bool operator==(const host&, const host&) = default;
};

// unsupported: there is no /proc to read it from.
result<host> this_host();

}  // namespace holdfast::sqlite
