#include "stores/sqlite/format.hpp"

#include "stores/sqlite/inheritance.hpp"

#include <utility>

namespace holdfast::sqlite {

void format::check(database& opened, const std::string& path) {
  const auto refuse = [&path](errc code, const std::string& why) {
    throw failed{{code, "sqlite, open " + path + ", " + why}};
  };
  // The first look at the file: not a database shows here.
  const std::int64_t found = opened.pragma_number("application_id");
  const std::int64_t written = opened.pragma_number("user_version");
  if (found == application) {
    if (written > version) {
      refuse(errc::unsupported, "written by a newer holdfast (format " + std::to_string(written) +
                                    ", this one knows " + std::to_string(version) +
                                    "): update this program, or name another file");
    }
    return;
  }
  statement asked(opened, "SELECT count(*) FROM sqlite_master");
  query tables(asked);
  const bool empty = tables.next() && tables.number(0) == 0 && found == 0 && written == 0;
  if (!empty) {
    refuse(errc::name_conflict, "another program's database; name another file");
  }
}

result<void> format::look(const std::string& path) {
  const inside_sqlite inside;
  auto opened = database::open_to_look(path);
  if (!opened) return {};  // who opens it in earnest says why
  // A new file is enlarged before its first page is written: who opens it in earnest waits for that.
  if ((*opened)->begins_blank()) return {};
  try {
    check(**opened, path);
  } catch (const failed& failure) {
    // Everything else may be the work of who writes to it at this moment.
    if (failure.why == errc::name_conflict || failure.why == errc::unsupported) {
      return tl::unexpected(failure.why);
    }
  }
  return {};
}

}  // namespace holdfast::sqlite
