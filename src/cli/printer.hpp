// Where output goes: results to stdout; notes for people to stdout too where that is a terminal,
// else to stderr, so that a pipe gets results only.
#pragma once

#include <string_view>

namespace holdfast::cli {

// False: stdout is full or closed.
bool print(std::string_view result) noexcept;
// The same as a command's last word: its exit code, having told what is wrong.
int print_all(std::string_view result) noexcept;
void note(std::string_view text) noexcept;

}  // namespace holdfast::cli
