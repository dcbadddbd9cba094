// Which cluster, where in its keys, and as whom.
#pragma once

#include "stores/queued/options.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::etcd {

enum class name_layout : std::uint8_t {
  flat,  // '/' in a name is written %2F: no name's keys are below another's
  path,  // '/' is kept, as by Go's clients
};

// The root is "" or "shop/": every key begins with it.
struct server_options : stores::cluster_options {
  name_layout layout = name_layout::flat;
  duration stall_limit = std::chrono::seconds(5);  // then a silent connection is left
};

}  // namespace holdfast::etcd
