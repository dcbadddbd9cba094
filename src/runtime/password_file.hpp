// A password in a file of its own.
#pragma once

#include <holdfast/result.hpp>

#include <string>

namespace holdfast::runtime {

// The first line. Also of a pipe; no more than a password can have is read of a file that never
// ends. invalid: why, without the file's name or a word of its content.
result<std::string> read_password_file(const std::string& path);

}  // namespace holdfast::runtime
