// In a build without an HTTP library.
#include "cli/commands.hpp"

namespace holdfast::cli {

int serve_engines(const context&, const serve_arguments&) {
  return tell(
      {exit_code::engine,
       "serve is not in this build (system, cpp-httplib was missing when it was compiled)"});
}

}  // namespace holdfast::cli
