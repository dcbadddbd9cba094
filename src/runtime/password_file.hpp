// A password in a file of its own.
#pragma once

#include <holdfast/result.hpp>

#include <string>

namespace holdfast::runtime {

// The first line, of a pipe too; reads no more than the longest password, even of a file that never
// ends. invalid: says why, without the file's name or anything of its content.
result<std::string> read_password_file(const std::string& path);

}  // namespace holdfast::runtime
