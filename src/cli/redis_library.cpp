// holdfast redis-library: the functions of the Redis store, for administrators who load them by hand.
#include "cli/commands.hpp"
#include "cli/printer.hpp"
#include "stores/table.hpp"

namespace holdfast::cli {

int redis_library() {
  const auto text = stores::redis_library();
  if (!text) return tell({exit_code::usage, text.error().detail});
  return print_all(*text);
}

}  // namespace holdfast::cli
