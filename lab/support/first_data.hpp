// The initial data of a database server is the same each time, and making it keeps a core busy for
// a second: it is made once, then copied.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace holdfast::test {

// Copies what `make` has made with that program to `to`; if there is none yet, `make` makes it
// there. Shared within this process and, if HOLDFAST_TEST_DATA names a folder, among all processes
// with the same folder, as the tests of a run are. Safe among processes and threads. Throws what
// `make` throws.
void copy_first_data(std::string program, const std::filesystem::path& to,
                     const std::function<void(const std::filesystem::path& into)>& make);

}  // namespace holdfast::test
