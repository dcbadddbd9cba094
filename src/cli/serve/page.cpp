#include "cli/serve/answers.hpp"

namespace holdfast::cli::serve {

std::string_view page_text() {
  return
#include <serve_page.inc>
      ;
}

}  // namespace holdfast::cli::serve
