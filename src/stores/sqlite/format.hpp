// Whose file it is: ours, in a format that we know, or new. Everything else is left as it is.
#pragma once

#include "stores/sqlite/database.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>

namespace holdfast::sqlite {

// The values are in the database. 1: nobody waited in a resource's own row; 2: no grant was an offer. Who opens
// such a file makes it a 3 (see join()).
struct format {
  static constexpr std::int64_t application = 0x486f6c64;  // "Hold"
  static constexpr std::int64_t version = 3;

  // Throws failed. name_conflict: not a database, or another program's. unsupported: written by a
  // newer version.
  static void check(database& opened, const std::string& path);

  // The same before anything is opened for writing, locked or made beside the file. Does not see
  // what is only in a write-ahead log, so that ok is not the last word.
  static result<void> look(const std::string& path);
};

}  // namespace holdfast::sqlite
