// holdfast release --force and holdfast revoke: the two ways to break the glass.
#include "cli/commands.hpp"
#include "cli/inspection.hpp"
#include "cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

// `asked`: for certain claims.
int nobody(const look_arguments& what, const engine& engine, bool asked) {
  return tell(
      {exit_code::no,
       asked ? "no holder of '" + what.name + "' has that claim; show lists them (" +
                   engine.to.engine + ", revoke, no such holder)"
             : "nobody holds '" + what.name + "' (" + engine.to.engine + ", revoke, no holder)"});
}

// Shows what would be taken away, and asks. True: yes.
bool confirmed(const std::vector<spi::holder>& holders) {
  std::cerr << holder_table(holders)
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
int ask_first(const engine& engine, const look_arguments& what, std::vector<std::string>& claims) {
  const auto state = engine.client.inspect(what.name);
  if (!state) return engine.refused("cannot inspect it", "inspect", state.error());
  const auto holders = chosen(*state, what.claim);
  if (holders.empty()) return nobody(what, engine, !what.claim.empty());
  if (!confirmed(holders)) {
    return tell({exit_code::no, "nothing was released (you answered no)"});
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
  auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  // Who came while the question was open is not what the answer was about.
  std::vector<std::string> claims{what.claim};
  if (ask) {
    const int answer = ask_first(*engine, what, claims);
    if (answer != exit_code::ok) return answer;
  }
  std::vector<spi::holder> all;
  for (const std::string& claim : claims) {
    const auto taken = engine->client.revoke(what.name, how, claim);
    if (!taken) return engine->refused("cannot take it away", "revoke", taken.error());
    all.insert(all.end(), taken->begin(), taken->end());
  }
  if (all.empty()) return nobody(what, *engine, ask || !what.claim.empty());
  note(afterwards);  // first: it is done, whether or not the answer can be printed
  return print_all(holder_table(all));
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
