// The options of every command, and which may be combined. Only this file and the sources that
// include it know the library that parses command lines: it is slow to compile.
#pragma once

#include "cli/arguments.hpp"
#include "cli/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli {

// Thrown while a line is read: what is wrong with it.
struct wrong_usage {
  std::string what;
  std::optional<std::string> topic{};  // whose --help says more; none: that of the command
};

// What a reader makes of the text of an option.
template <class T>
using understood = tl::expected<T, std::string>;

[[noreturn]] inline void refuse(std::string what) { throw wrong_usage{.what = std::move(what)}; }

// An option with a value. The error of `read` is the end of the sentence "--ttl ...".
template <class T, class Read>
void add(CLI::App& command, const std::string& name, T& into, Read read) {
  command.add_option_function<std::string>(name, [name, &into, read](const std::string& text) {
    auto value = read(text);
    if (!value) refuse(name + " " + value.error());
    into = *std::move(value);
  });
}

inline auto number(std::uint32_t least, std::uint32_t most) {
  return [=](const std::string& text) { return parse_number(text, least, most); };
}

inline auto span(duration least, duration most = forever) {
  return [=](const std::string& text) -> understood<duration> {
    auto read = parse_duration(text);
    if (!read || (*read >= least && *read <= most)) return read;
    if (most == forever) return tl::unexpected("must be at least " + to_text(least));
    if (least == duration{0}) return tl::unexpected("must be at most " + to_text(most));
    return tl::unexpected("must be from " + to_text(least) + " to " + to_text(most));
  };
}

inline understood<std::string> not_empty(const std::string& text) {
  if (text.empty()) return tl::unexpected(std::string("must not be empty"));
  return text;
}

// One of these words.
template <class Table>
auto choice(const Table& table, const std::string& what) {
  return [&table, what](const std::string& text) -> understood<decltype(table.front().second)> {
    for (const auto& [word, meaning] : table) {
      if (word == text) return meaning;
    }
    return tl::unexpected(what);
  };
}

inline std::string_view to_string(std::string_view word) noexcept { return word; }

// Some of these words with commas between them, none twice.
template <class Known>
auto list_of(const Known& known) {
  using word = typename Known::value_type;
  return [known](const std::string& text) -> understood<std::vector<word>> {
    std::vector<word> all;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      const auto one = std::find_if(known.begin(), known.end(), [&](const word& each) {
        return to_string(each) == text.substr(at, end - at);
      });
      if (one == known.end()) {
        std::vector<std::string> names;
        for (const word& each : known) names.emplace_back(to_string(each));
        return tl::unexpected("must be a list of " + joined(names));
      }
      if (std::find(all.begin(), all.end(), *one) != all.end()) {
        return tl::unexpected(std::string("must not list anything twice"));
      }
      all.push_back(*one);
      at = end + 1;
    }
    return all;
  };
}

// The command that was chosen, with its options, and the words that no option took.
struct typed_line {
  const CLI::App* command = nullptr;
  std::string name{};               // of the command, as typed: "run", "multi run"
  std::vector<std::string> before;  // the first --
  bool split = false;               // there was one
  std::vector<std::string> after;   // it, untouched
};

inline bool given(const typed_line& line, const char* name) {
  const CLI::Option* const option = line.command->get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

// If no command follows "--", words before and after it mean the same.
inline std::vector<std::string> all_of(const typed_line& line) {
  std::vector<std::string> all = line.before;
  all.insert(all.end(), line.after.begin(), line.after.end());
  return all;
}

inline void no_words(const typed_line& line) {
  if (!all_of(line).empty()) refuse(line.name + " takes no name");
}

struct known_command {
  const char* name;
  void (*declare)(CLI::App& command, arguments& into);
  // Of the command that was chosen, when its options are read.
  void (*check)(const typed_line& line, arguments& into);
};

std::span<const known_command> known_commands() noexcept;
void declare_global(CLI::App& app, arguments& into);

// A command below another one.
CLI::App& add_command(CLI::App& app, const char* name);

// Of the commands in src/tools.
void declare_demo(CLI::App& command, arguments& into);
void check_demo(const typed_line& line, arguments& into);
void declare_bench(CLI::App& command, arguments& into);
void declare_torture(CLI::App& command, arguments& into);
void check_torture(const typed_line& line, arguments& into);

}  // namespace holdfast::cli
