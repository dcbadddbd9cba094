// The client of the C interface, and its locks: one handle for all kinds.
#pragma once

#include "c/answers.hpp"
#include "c/held.hpp"

#include <holdfast/client.hpp>
#include <holdfast/election.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

struct hf_client {
  holdfast::c::home made_in{};
  holdfast::client inside;
  std::shared_ptr<holdfast::c::reentries> entries;
};

struct hf_cancel {
  holdfast::c::home made_in{};
  std::stop_source source;
};

namespace holdfast::c {

// A mutex whose owner may acquire it again.
struct recursive_lock {
  std::shared_ptr<reentries> among;
  mutex lock;
};

}  // namespace holdfast::c

struct hf_lock {
  using kinds = std::variant<holdfast::mutex, holdfast::c::recursive_lock, holdfast::shared_mutex,
                             holdfast::semaphore, holdfast::election, holdfast::multi_lock>;

  holdfast::c::home made_in{};
  // Mutable: acquiring changes only what these objects guard themselves.
  mutable kinds inside;
};

namespace holdfast::c {

// None: all defaults.
std::optional<retry_policy> retry_of(const hf_retry& given);

inline std::stop_token token_of(const hf_cancel* cancel) {
  return cancel == nullptr ? std::stop_token{} : cancel->source.get_token();
}

// As that kind; throws invalid if it is another one.
template <class Kind>
Kind& as_kind(const hf_lock* lock, const char* what) {
  auto* found = std::get_if<Kind>(&use(lock, "lock").inside);
  if (found == nullptr) mistake(errc::invalid, std::string("this lock is no ") + what);
  return *found;
}

}  // namespace holdfast::c
