#include "stores/sqlite/heirs.hpp"

#include "stores/sqlite/life.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace holdfast::sqlite {

namespace {

namespace fs = std::filesystem;

// Does the process have the file or socket open, as /proc names it? False too where it may not be asked.
bool has_open(const fs::path& process, std::string_view wanted) {
  std::error_code problem;
  fs::directory_iterator each(process / "fd", problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    std::error_code gone;
    if (fs::read_symlink(each->path(), gone).native() == wanted) return true;
  }
  return false;
}

bool is_process(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<std::string> heir_of(const folder& at, const std::string& token) {
  const std::uint64_t parcel = parcel_given(at, token);
  if (parcel == 0) return std::nullopt;
  const std::string own = at.path() + "/" + token;
  const std::string inherited = "socket:[" + std::to_string(parcel) + "]";
  std::optional<std::string> heir;
  std::error_code problem;
  fs::directory_iterator each("/proc", problem);
  for (; !problem && each != fs::directory_iterator(); each.increment(problem)) {
    const fs::path& process = each->path();
    if (!is_process(process)) continue;
    if (has_open(process, own)) return std::nullopt;
    if (heir || !has_open(process, inherited)) continue;
    std::string command;
    std::getline(std::ifstream(process / "comm"), command);
    heir = "pid " + process.filename().string() + " (" + command + ")";
  }
  return heir;
}

}  // namespace holdfast::sqlite
