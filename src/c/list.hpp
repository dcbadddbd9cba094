// What a call for operators found, with the strings that its structures point to.
#pragma once

#include "c/answers.hpp"

#include <holdfast/inspection.hpp>

#include <variant>
#include <vector>

struct hf_list {
  std::variant<std::vector<holdfast::resource_summary>, holdfast::resource_state,
               std::vector<holdfast::health_check>>
      found;
};
