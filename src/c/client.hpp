// The client of the C interface.
#pragma once

#include "c/answers.hpp"
#include "c/held.hpp"

#include <holdfast/client.hpp>

#include <memory>
#include <stop_token>

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

// None: all defaults.
std::optional<retry_policy> retry_of(const hf_retry& given);

inline std::stop_token token_of(const hf_cancel* cancel) {
  return cancel == nullptr ? std::stop_token{} : cancel->source.get_token();
}

}  // namespace holdfast::c
