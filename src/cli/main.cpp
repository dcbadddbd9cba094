// The program: puts things together.
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/secrets.hpp"

#include <fcntl.h>
#include <holdfast_version.hpp>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace cli = holdfast::cli;

// The number of a closed standard file would be taken by the next open(), and the child's output
// would go into a database. Opened the wrong way round, so that reading and writing keep failing:
// an answer that nobody can get is not a success.
void open_standard_files() noexcept {
  for (int file = 0; file <= 2; ++file) {
    if (::fcntl(file, F_GETFD) >= 0) continue;
    ::open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int dispatch(const cli::context& context, const cli::arguments& asked) {
  const std::string& command = asked.command;
  if (command == "run") return cli::run(context, asked.hold);
  if (command == "acquire") return cli::acquire(context, asked.hold, asked.token);
  if (command == "renew") return cli::renew_token(context, asked.token);
  if (command == "elect") return cli::elect(context, asked.hold);
  if (command == "multi run") return cli::multi_run(context, asked.hold);
  if (command == "latch") return cli::latch(context, asked.latch);
  if (command == "ls") return cli::ls(context, asked.look);
  if (command == "show") return cli::show(context, asked.look);
  if (command == "release") {
    if (asked.token.given()) return cli::release_token(context, asked.token);
    return cli::release(context, asked.look);
  }
  if (command == "revoke") return cli::revoke(context, asked.look);
  if (command == "watch") return cli::watch(context, asked.look);
  if (command == "doctor") return cli::doctor(context, asked.look);
  if (command == "redis-library") return cli::redis_library();
  if (command == "serve") return cli::serve_engines(context, asked.serve);
  if (command == "bench") return cli::bench(context, asked.bench);
  if (command == "torture") return cli::torture(context, asked.torture);
  return cli::flash_sale(context, asked.sale);
}

int run(int count, char** arguments) {
  std::vector<std::string> words(arguments + std::min(count, 1), arguments + count);
  cli::scrub_arguments(count, arguments);  // at once: ps shows them
  cli::context context;
  context.taken = cli::take_secrets(environ);
  context.received = cli::received_url();
  context.environment = environ;
  const auto asked = cli::read_arguments(std::move(words));
  if (!asked) return cli::tell(asked.error());
  if (asked->help) return cli::print_all(cli::help_about(asked->command));
  if (asked->version) return cli::print_all("holdfast " HOLDFAST_VERSION "\n");
  context.global = asked->global;
  return dispatch(context, *asked);
}

}  // namespace

int main(int count, char** arguments) {
  open_standard_files();
  try {
    return run(count, arguments);
  } catch (const holdfast::lock_error& problem) {
    const bool usage = problem.code() == holdfast::errc::invalid;
    return cli::tell({usage ? cli::exit_code::usage : cli::exit_code::engine, problem.what()});
  } catch (const std::exception& problem) {
    return cli::tell(
        {cli::exit_code::engine, std::string("out of resources (system, ") + problem.what() + ")"});
  }
}
