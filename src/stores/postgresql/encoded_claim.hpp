// A claim as text: what it is asked with, in the form that stands in the name's row while it is the only
// holder, or the first one that waits. docs/formats/sql.md says which.
#pragma once

#include <holdfast/spi/claim.hpp>

#include <string>

namespace holdfast::postgresql {

// `process`: by which the others know the client.
std::string encoded_claim(const spi::claim& claim, const std::string& process);

}  // namespace holdfast::postgresql
