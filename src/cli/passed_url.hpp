// --pass-url: the way to the engine for a holdfast inside CMD. The URL goes into the environment
// without its secrets; these go into a sealed file in memory, whose descriptor CMD inherits. A
// program in between that closes descriptors closes this one too: then there is no password, never
// a wrong one.
#pragma once

#include "cli/descriptor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct passed_url {
  std::string url;       // whole
  std::string password;  // of a password file or the environment; empty: the URL's, or none
};

// What a holdfast around us passed; none, too, where the descriptor was closed on the way.
std::optional<passed_url> received_url();

// What CMD gets.
struct url_for_child {
  descriptor file;
  std::vector<std::string> variables;  // "NAME=value"
};
// Throws std::system_error.
url_for_child pass_url(const passed_url& what, const std::string& space);

// The variable that only a holdfast may pass on: "NAME=".
inline constexpr std::string_view url_descriptor_variable = "HOLDFAST_URL_FD=";

// What to do about a missing password, for a holdfast inside holdfast run; else empty.
std::string remedy_inside_run();

}  // namespace holdfast::cli
