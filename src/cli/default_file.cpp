#include "cli/default_file.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

outcome<fs::path> state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  // The specification has relative ones ignored.
  if (state != nullptr && *state == '/') return fs::path(state);
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".local" / "state";
  const bool relative = home != nullptr && *home != '\0';
  return usage(std::string(relative ? "HOME is not an absolute path" : "HOME is not set") +
               ": name the file with --url sqlite:FILE, or an engine with --url");
}

}  // namespace

outcome<std::string> default_file() {
  auto folder = state_folder();
  if (!folder) return tl::unexpected(folder.error());
  *folder /= "holdfast";
  std::error_code problem;
  fs::create_directories(folder->parent_path(), problem);
  // Made with its mode, not changed afterwards: nobody gets in between.
  if (!problem && ::mkdir(folder->c_str(), 0700) != 0 && errno != EEXIST) {
    problem.assign(errno, std::system_category());
  }
  if (problem) {
    return tl::unexpected(complaint{
        exit_code::engine,
        "cannot make the folder of the default file; name another with --url (sqlite, mkdir " +
            folder->string() + ", " + problem.message() + ")"});
  }
  return (*folder / "holdfast.db").string();
}

std::string in_url(std::string_view path) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%' || c == '?' || c == '#') {
      text += '%';
      text += digits[byte >> 4U];
      text += digits[byte & 15U];
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace holdfast::cli
