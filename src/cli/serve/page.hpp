// The live page as it was put together when the program was built, from src/cli/page.
#pragma once

#include <string_view>

namespace holdfast::cli::serve {

// Its script and style have {{nonce}} where a nonce belongs.
std::string_view page_text();

}  // namespace holdfast::cli::serve
