// In a build without an HTTP library.
#include "cli/commands.hpp"
#include "cli/leader_page.hpp"

namespace holdfast::cli {

int serve_engines(const context&, const serve_arguments&) {
  return tell(
      {exit_code::engine,
       "serve is not in this build (system, cpp-httplib was missing when it was compiled)"});
}

outcome<std::unique_ptr<leader_page>> leader_page::open(const listen_address&, std::string,
                                                        std::string) {
  return tl::unexpected(complaint{
      exit_code::engine,
      "--listen is not in this build (system, cpp-httplib was missing when it was compiled)"});
}

}  // namespace holdfast::cli
