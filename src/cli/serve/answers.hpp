// The answers of `holdfast serve`, with the headers that all of them have.
#pragma once

#include "cli/http/server.hpp"

#include <holdfast/result.hpp>

#include <string>
#include <string_view>

namespace holdfast::cli::serve {

// {"error": what}
http::response problem(int status, std::string_view what);
// What an engine said.
http::response problem(const error& why, std::string_view what);
http::response document(std::string json);
http::response text_document(std::string body);
// The live page, with a nonce of its own for its script and style. It asks for the token where one is
// needed.
http::response live_page(bool needs_token);

// The live page as it was put together when the program was built, from src/cli/page.
//
// Its script and style have {{nonce}} where a nonce belongs.
std::string_view page_text();

}  // namespace holdfast::cli::serve
