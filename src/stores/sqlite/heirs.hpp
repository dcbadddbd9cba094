// Who keeps a client alive whose own process has ended: a process that inherited its sign of life.
#pragma once

#include "stores/sqlite/folder.hpp"

#include <optional>
#include <string>

namespace holdfast::sqlite {

// "pid 4712 (sleep)", for people. Nothing: the client's own process lives, it never handed its sign of
// life on, or nobody can be seen that has it (another user's process, another pid namespace).
std::optional<std::string> heir_of(const folder& at, const std::string& token);

}  // namespace holdfast::sqlite
