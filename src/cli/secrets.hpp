// Passwords: taken out of the program's own arguments and environment at once, and kept out of
// everything that a child or another user of the machine can see.
#pragma once

#include "cli/complaint.hpp"

#include <holdfast/spi/url.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// What the environment said before it was wiped.
struct secrets {
  std::optional<std::string> url;       // HOLDFAST_URL, whole
  std::optional<std::string> password;  // HOLDFAST_PASSWORD
};

// Overwrites tokens, and passwords in URLs, before the first "--" of the arguments, where they stand: ps shows
// the process's own memory. Copy the arguments first.
void scrub_arguments(int count, char** arguments) noexcept;

// Reads the two variables and overwrites them in the same way. Only before any thread exists.
secrets take_secrets(char** environment);

// A URL that may be shown: without the password of its credentials or its options. Of a text that
// is no URL at all, everything that could be one is cut.
std::string public_url(std::string_view text);

// The environment of a child: ours without the password and what is withheld ("NAME=" each), and with the
// given variables ("NAME=value") instead of inherited ones.
std::vector<std::string> child_environment(char** ours, const secrets& taken,
                                           const std::vector<std::string>& additions,
                                           const std::vector<std::string_view>& withheld);

// The first line of the file.
outcome<std::string> read_password(const std::string& file);

}  // namespace holdfast::cli
