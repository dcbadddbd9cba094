// holdfast doctor: checks the engine and its settings, a line each.
#include "cli/commands.hpp"
#include "cli/json.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"
#include "stores/table.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

std::string remedy_of(const error& why) {
  if (why == errc::denied) {
    return "access refused: check the certificate, the user, the password and the user's "
           "permissions";
  }
  if (why == errc::unavailable) return "is it running, and can this machine reach it?";
  return "see the engine's page in the documentation";
}

// An engine that cannot be opened is a check that failed, not an end of the examination.
outcome<std::vector<spi::check>> examine(const context& context, const address& to) {
  const auto client = connect(context, to);
  if (!client && client.error().code == exit_code::usage) return tl::unexpected(client.error());
  if (!client) {
    return std::vector<spi::check>{{.name = "open",
                                    .state = spi::check::status::fail,
                                    .detail = client.error().answer,
                                    .remedy = "nothing else can be checked until it opens"}};
  }
  auto checks = client->probe();
  if (!checks) {
    return std::vector<spi::check>{{.name = "probe",
                                    .state = spi::check::status::fail,
                                    .detail = provenance(to.engine, "probe", checks.error()),
                                    .remedy = remedy_of(checks.error())}};
  }
  return std::move(*checks);
}

std::string text_of(const spi::check& check) {
  std::string line(name_of(check.state));
  line.resize(6, ' ');
  line += plain(check.name);
  if (!check.detail.empty()) line += ": " + plain(check.detail);
  // A remedy of several lines is something to run: as it is, below.
  const std::size_t end = std::min(check.remedy.find('\n'), check.remedy.size());
  if (!check.remedy.empty()) line += "; " + plain(check.remedy.substr(0, end));
  line += "\n";
  for (std::size_t from = end + 1; from < check.remedy.size();) {
    const std::size_t to = std::min(check.remedy.find('\n', from), check.remedy.size());
    line += plain(check.remedy.substr(from, to - from)) + "\n";
    from = to + 1;
  }
  return line;
}

}  // namespace

int doctor(const context& context, const look_arguments& what) {
  const auto to = find_address(context, memory_is::fine);
  if (!to) return tell(to.error());
  auto checks = examine(context, *to);
  if (!checks) return tell(checks.error());
  std::string text;
  if (what.json) {
    text = json::checks(*checks);
  } else {
    for (const spi::check& check : *checks) text += text_of(check);
  }
  const int printed = print_all(text);
  const bool failed = std::any_of(checks->begin(), checks->end(), [](const spi::check& check) {
    return check.state == spi::check::status::fail;
  });
  if (failed) tell("a check failed (" + to->engine + ", probe, see the lines with fail)");
  return failed ? exit_code::no : printed;
}

// holdfast redis-library: the functions of the Redis store, for administrators who load them by hand.
int redis_library() {
  const auto text = stores::redis_library();
  if (!text) return tell({exit_code::usage, text.error().detail});
  return print_all(*text);
}

}  // namespace holdfast::cli
