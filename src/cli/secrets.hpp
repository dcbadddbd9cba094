// Passwords: taken out of the program's own arguments and environment at once, and kept out of
// everything that a child or another user of the machine can see.
#pragma once

#include "cli/output.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/spi/url.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// What the environment contained before it was wiped.
struct secrets {
  std::optional<std::string> url;       // HOLDFAST_URL, whole
  std::optional<std::string> password;  // HOLDFAST_PASSWORD
};

// Overwrites tokens, and passwords in URLs, in place: ps shows the process's own memory. Copy the
// arguments first: a command gets its own as they were typed.
void scrub_arguments(int count, char** arguments) noexcept;

// Reads the two variables and overwrites them in the same way. Only before any thread exists.
secrets take_secrets(char** environment);

// A URL that may be shown: without the password of its credentials or its options. From a text that
// is no URL at all, everything that could be a password is cut.
std::string public_url(std::string_view text);

// The environment of a child: ours without the password and what is withheld ("NAME=" each), and with the
// given variables ("NAME=value") instead of inherited ones.
std::vector<std::string> child_environment(char** ours, const secrets& taken,
                                           const std::vector<std::string>& additions,
                                           const std::vector<std::string_view>& withheld);

// The first line of the file that `option` names. `topic`: as of usage().
outcome<std::string> read_secret(std::string_view option, const std::string& file,
                                 std::string_view topic = {});

// --pass-url: how a holdfast inside CMD reaches the engine. The URL goes into the environment
// without its secrets; these go into a sealed file in memory, whose descriptor CMD inherits. If a
// program in between closes descriptors, it closes this one, too: then there is no password, never
// a wrong one.
struct passed_url {
  std::string url;       // whole
  std::string password;  // of a password file or the environment; empty: the URL's, or none
};

// What a holdfast around us passed; none, too, if the descriptor was closed on the way.
std::optional<passed_url> received_url();

// What CMD gets.
struct url_for_child {
  runtime::descriptor file;
  std::vector<std::string> variables;  // "NAME=value"
};
// Made before other files are opened, and filled later: shells know descriptors of one digit only. Both throw
// std::system_error.
url_for_child prepare_url();
void pass_url(const passed_url& what, const std::string& space, url_for_child& into);

// What to do about a missing password, for a holdfast inside holdfast run; else empty.
std::string remedy_inside_run();

}  // namespace holdfast::cli
