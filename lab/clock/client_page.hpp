// What a torture says to a client, in a file that the client has mapped: how its wall clock is shifted, and
// at which of its system calls it is stopped or killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace holdfast::torture {

struct client_page {
  std::atomic<std::int64_t> shift;      // ns, added to the wall clock
  std::atomic<std::int64_t> countdown;  // system calls until the signal; 0: none
  std::atomic<std::int64_t> signal;
  std::atomic<std::int64_t> struck_at;  // ns of the steady clock; 0: not yet
};

static_assert(sizeof(client_page) == 4 * sizeof(std::int64_t));
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace holdfast::torture
