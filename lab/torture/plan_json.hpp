// A plan in JSON. Only sources include this: the JSON library is slow to compile.
#pragma once

#include "torture/plan.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::torture {

nlohmann::json to_json(const plan& wanted);
// Throws std::runtime_error if it is none, or out of limits: the file may be anybody's.
plan plan_from(const nlohmann::json& read);

}  // namespace holdfast::torture
