// A claim as its ticket: what it is asked with, as the words that sit in the name's row while it is the only
// holder, or the first one that waits. docs/formats/sql.md says which.
#pragma once

#include <holdfast/spi/claim.hpp>

#include <string>

namespace holdfast::postgresql {

// `process`: by which the others know the client.
std::string ticket(const spi::claim& claim, const std::string& process);

}  // namespace holdfast::postgresql
