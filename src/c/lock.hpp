// The locks of the C interface: one handle for all kinds.
#pragma once

#include "c/client.hpp"

#include <holdfast/election.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <memory>
#include <string>
#include <variant>

namespace holdfast::c {

// A mutex whose owner may take it again.
struct recursive_lock {
  std::shared_ptr<reentries> among;
  mutex lock;
};

}  // namespace holdfast::c

struct hf_lock {
  using kinds = std::variant<holdfast::mutex, holdfast::c::recursive_lock, holdfast::shared_mutex,
                             holdfast::semaphore, holdfast::election, holdfast::multi_lock>;

  holdfast::c::home made_in{};
  // Acquiring changes nothing in these objects that they do not guard themselves.
  mutable kinds inside;
};

namespace holdfast::c {

// As that kind; throws invalid if it is another one.
template <class Kind>
Kind& as_kind(const hf_lock* lock, const char* what) {
  auto* found = std::get_if<Kind>(&use(lock, "lock").inside);
  if (found == nullptr) mistake(errc::invalid, std::string("this lock is no ") + what);
  return *found;
}

}  // namespace holdfast::c
