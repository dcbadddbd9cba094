// What a database server begins with is the same each time, and making it keeps a core busy for a second: made
// once, then copied.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace holdfast::test {

// Copies what `make` has made by that program to `to`; where it is not known yet, `make` makes it there. Known to
// this process and, where HOLDFAST_TEST_DATA names a folder, to all that were given the same, as the tests of a run
// are. Safe among processes and threads. Throws what `make` throws.
void copy_first_data(std::string program, const std::filesystem::path& to,
                     const std::function<void(const std::filesystem::path& into)>& make);

}  // namespace holdfast::test
