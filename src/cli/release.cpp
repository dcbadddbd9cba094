// holdfast release --force and holdfast revoke: the two ways to break the glass.
#include "cli/commands.hpp"
#include "cli/holder_table.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

// `asked`: for certain claims.
int nobody(const look_arguments& what, const std::string& engine, bool asked) {
  tell(!asked ? "nobody holds '" + what.name + "' (" + engine + ", revoke, no holder)"
              : "no holder of '" + what.name + "' has that claim; show lists them (" + engine +
                    ", revoke, no such holder)");
  return exit_code::no;
}

// Shows what would be taken away, and asks. True: yes.
bool confirmed(const std::vector<spi::holder>& holders) {
  std::cerr << holder_table(holders, std::chrono::system_clock::now())
            << "Take it from this holder? Two may run until it notices. [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::vector<spi::holder> chosen(const spi::resource_state& state, const std::string& claim) {
  std::vector<spi::holder> left = state.holders;
  std::erase_if(left, [&](const spi::holder& one) { return !claim.empty() && one.claim != claim; });
  return left;
}

// `claims`: of those that were shown.
int ask_first(const client& client, const look_arguments& what, const std::string& engine,
              std::vector<std::string>& claims) {
  const auto state = client.inspect(what.name);
  if (!state) return tell(from_engine("cannot inspect it", engine, "inspect", state.error()));
  const auto holders = chosen(*state, what.claim);
  if (holders.empty()) return nobody(what, engine, !what.claim.empty());
  if (!confirmed(holders)) {
    tell("nothing was released (you answered no)");
    return exit_code::no;
  }
  claims.clear();
  for (const spi::holder& each : holders) claims.push_back(each.claim);
  return exit_code::ok;
}

int break_glass(const context& context, const look_arguments& what, spi::revocation how,
                const std::string& afterwards) {
  const bool ask = how == spi::revocation::force && !what.yes;
  if (ask && (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)) {
    return tell(
        usage("release asks for confirmation, and there is no terminal: use --yes", "release")
            .value());
  }
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  auto client = connect(context, *to);
  if (!client) return tell(client.error());
  // Who came while the question was open is not what the answer was about.
  std::vector<std::string> claims{what.claim};
  if (ask) {
    const int answer = ask_first(*client, what, to->engine, claims);
    if (answer != exit_code::ok) return answer;
  }
  std::vector<spi::holder> all;
  for (const std::string& claim : claims) {
    const auto taken = client->revoke(what.name, how, claim);
    if (!taken) {
      return tell(from_engine("cannot take it away", to->engine, "revoke", taken.error()));
    }
    all.insert(all.end(), taken->begin(), taken->end());
  }
  if (all.empty()) return nobody(what, to->engine, ask || !what.claim.empty());
  note(afterwards);  // first: it is done, whether or not the answer can be printed
  return print_all(holder_table(all, std::chrono::system_clock::now()));
}

}  // namespace

int release(const context& context, const look_arguments& what) {
  return break_glass(context, what, spi::revocation::force,
                     "taken from the holders below; two may run until they notice, at their next "
                     "renewal (a third of the ttl) at the latest\n");
}

int revoke(const context& context, const look_arguments& what) {
  return break_glass(
      context, what, spi::revocation::safe,
      "no longer renewed: the holders below are notified, and nobody else is granted before "
      "their leases end\n");
}

}  // namespace holdfast::cli
