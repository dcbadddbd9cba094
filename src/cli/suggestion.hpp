// What was probably meant by a word that nobody knows: the nearest of those that are known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// "; did you mean --wait?", or nothing where no known word is near. Of two that are equally near,
// the first.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace holdfast::cli
