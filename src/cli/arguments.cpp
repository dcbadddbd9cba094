#include "cli/arguments.hpp"

#include "cli/options.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

// How many letters are wrong, missing, superfluous, or swapped with their neighbour. Three rows of
// the usual table: a swap looks two rows back.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t wrong = one[i - 1] == other[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

// What was probably meant by an unknown word: "; did you mean --wait?", or nothing if no known word
// is near. Of two that are equally near, the first.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t letters_a_mistake = 3;
  const auto letters = std::count_if(word.begin(), word.end(), [](char c) { return c != '-'; });
  // At most one mistake in three letters, so that a word of one or two is never guessed at.
  std::size_t least = static_cast<std::size_t>(letters) / letters_a_mistake + 1;
  std::string nearest;
  for (const std::string& one : known) {
    const std::size_t far = distance(word, one);
    if (far >= least) continue;
    least = far;
    nearest = one;
  }
  return nearest.empty() ? nearest : "; did you mean " + nearest + "?";
}

// Whether a text may be repeated: it is a word, and not something like a secret in the wrong place.
bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= 24 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || c == '-';
  });
}

std::string chosen_name(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += (name.empty() ? "" : " ") + at->get_name();
  }
  return name;
}

// The long options of the command that was chosen, and those of all commands.
std::vector<std::string> known_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app;; at = at->get_subcommands().front()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    if (at->get_subcommands().empty()) return names;
  }
}

// What no option took are words, or unknown options. The library's own positional arguments would
// take "[a,b]" for a list. `line`: what comes before "--".
void sort_rest(const CLI::App& app, const std::vector<std::string>& line,
               const std::string& command, typed_line& into) {
  for (const std::string& one : app.remaining(true)) {
    // "-1" is a number out of range, which the command explains better.
    const bool negative =
        command == "latch" && one.size() > 1 && one[0] == '-' && one[1] >= '0' && one[1] <= '9';
    if (!one.starts_with('-') || one == "-" || negative) {
      into.before.push_back(one);
      continue;
    }
    const std::string name = one.substr(0, one.find('='));
    if (!is_word(name)) refuse("unknown option");
    refuse("unknown option " + name + suggestion(name, known_options(app)));
  }
  if (into.before.empty()) return;
  // Whatever comes before the command was meant as one.
  const std::string& first = into.before.front();
  const auto place = std::find(line.begin(), line.end(), command.substr(0, command.find(' ')));
  const auto word = std::find(line.rbegin(), line.rend(), first);
  if (!command.empty() && word.base() > place) return;
  if (!is_word(first)) throw wrong_usage{"unknown command", ""};
  std::vector<std::string> commands;
  for (const known_command& one : known_commands()) commands.emplace_back(one.name);
  throw wrong_usage{"unknown command " + first + suggestion(first, commands), ""};
}

// Declares the options of commands that are named only: declaring them all took a quarter of the
// program's start.
void declare_commands(CLI::App& app, const std::vector<std::string>& line, arguments& into) {
  for (const known_command& one : known_commands()) {
    CLI::App& command = add_command(app, one.name);
    if (std::find(line.begin(), line.end(), one.name) != line.end()) one.declare(command, into);
  }
}

void check_chosen(const CLI::App& app, typed_line& line, arguments& into) {
  if (into.command.empty()) refuse("a command is missing");
  if (into.serve.urls.size() > 1 && into.command != "serve") {
    refuse("--url takes one value and can be given once");
  }
  if (!into.serve.urls.empty()) into.global.url = into.serve.urls.front();
  line.command = app.get_subcommands().front();
  line.name = into.command;
  const std::string name = line.command->get_name();
  while (!line.command->get_subcommands().empty()) {
    line.command = line.command->get_subcommands().front();
  }
  for (const known_command& one : known_commands()) {
    if (one.name == name) one.check(line, into);
  }
}

}  // namespace

CLI::App& add_command(CLI::App& app, const char* name) {
  CLI::App& command = *app.add_subcommand(name);
  command.fallthrough();
  command.set_help_flag();
  return command;
}

outcome<arguments> read_arguments(std::vector<std::string> line) {
  arguments made;
  typed_line words;
  const auto split = std::find(line.begin(), line.end(), "--");
  if (split != line.end()) {
    words.split = true;
    words.after.assign(split + 1, line.end());
    line.erase(split, line.end());
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.require_subcommand(0, 1);  // one: what follows a command is never mistaken for another
  declare_global(app, made);
  declare_commands(app, line, made);
  try {
    try {
      app.parse(std::vector<std::string>(line.rbegin(), line.rend()));  // as the library expects
    } catch (const wrong_usage&) {
      if (!made.help && !made.version) throw;  // wrong values do not matter to them
    }
    made.command = chosen_name(app);
    sort_rest(app, line, made.command, words);
    if (!made.help && !made.version) check_chosen(app, words, made);
  } catch (const wrong_usage& problem) {
    return usage(problem.what, problem.topic.value_or(chosen_name(app)));
  } catch (const CLI::ArgumentMismatch& problem) {
    // "--ttl: 1 required TEXT missing"; only the option's name is ours to repeat.
    const std::string text = problem.what();
    const std::string option = text.substr(0, text.find_first_of(": "));
    return usage(option.starts_with("--") ? option + " takes one value and can be given once"
                                          : "an option takes one value and can be given once",
                 chosen_name(app));
  } catch (const CLI::ConversionError&) {
    return usage("an option that is switched on takes no value", chosen_name(app));
  } catch (const CLI::ParseError&) {
    return usage("the command line cannot be understood", chosen_name(app));
  }
  return made;
}

tl::expected<listen_address, std::string> parse_listen_address(const std::string& text) {
  const auto malformed = [] {
    return tl::unexpected(std::string("must be HOST:PORT, as in 127.0.0.1:4040 or [::1]:4040"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return malformed();
  std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != std::string::npos)) return malformed();
  const auto port = parse_number(text.substr(colon + 1), 0, 65'535);
  if (!port) return tl::unexpected(std::string("must have a port from 0 to 65535"));
  return listen_address{std::move(host), static_cast<std::uint16_t>(*port)};
}

complaint cannot_listen(const listen_address& at, const std::string& why) {
  return {exit_code::engine, "cannot listen on " + to_text(at) + " (system, " + why + ")"};
}

std::string to_text(const listen_address& at) {
  const bool six = at.host.find(':') != std::string::npos;
  return (six ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

}  // namespace holdfast::cli
