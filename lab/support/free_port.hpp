// A TCP port on the loopback interface that nobody uses now. Not from the range out of which the
// kernel takes ports for connections: a server that is restarted must find its port free again.
#pragma once

#include <cstdint>

namespace holdfast::test {

std::uint16_t free_port();

}  // namespace holdfast::test
