// Which engine, and the way to it: --url, else HOLDFAST_URL, else the embedded file of this user.
#pragma once

#include "cli/arguments.hpp"
#include "cli/complaint.hpp"
#include "cli/passed_url.hpp"
#include "cli/secrets.hpp"

#include <holdfast/client.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

// What every command is given.
struct context {
  global_arguments global;
  secrets taken;
  std::optional<passed_url> received;
  char** environment = nullptr;
};

struct address {
  std::string url;
  std::string engine;      // its scheme, for errors
  std::string password{};  // passed with the URL
};

enum class memory_is : std::uint8_t { useless, fine };

// Usage errors: no URL at all, `memory:` where it would exclude nobody, no HOME to find the default
// file in. Makes the default file's folder.
outcome<address> find_address(const context& context, memory_is memory = memory_is::useless);

// What the engine is opened with beside its URL.
struct credentials {
  std::string space;
  std::string password;
};
outcome<credentials> credentials_for(const context& context, const address& to);

// One thread has nobody to hand over to, and then fences grow by one.
enum class hand_over : std::uint8_t { never, within_process };

// `payload`: empty for the library's own.
outcome<client> connect(const context& context, const address& to,
                        std::shared_ptr<observer> observer = {}, std::string payload = {},
                        hand_over locally = hand_over::never);
// The same with credentials that are known already: a password file may be a pipe, to be read once.
outcome<client> connect(const address& to, credentials with,
                        std::shared_ptr<observer> observer = {}, std::string payload = {},
                        hand_over locally = hand_over::never);

// For whoever is about to wait, or to watch, without an end: an outage is sat out, but an engine that was
// never reached is something else. The URL may be wrong, and nobody would be told. At most 5 s.
std::optional<complaint> first_contact(const client& client, const address& to,
                                       const std::string& name);

// "host:pid:program", for people who look at holders.
std::string payload_of(const std::string& program);
std::string host_and_pid();

// The embedded store's file where no URL is given:
// ${XDG_STATE_HOME:-$HOME/.local/state}/holdfast/holdfast.db
//
// Makes its folder (0700) where that is missing. Usage error: neither variable is set.
outcome<std::string> default_file();

// A path as the path of a URL: what means something in a URL is escaped.
std::string in_url(std::string_view path);

}  // namespace holdfast::cli
