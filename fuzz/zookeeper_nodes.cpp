// The nodes below a lock in ZooKeeper's tree, their names and their data: anybody may have made them.
// sources: src/stores/zookeeper/names.cpp src/stores/payload.cpp src/core/names.cpp
// sources: src/core/claim.cpp src/core/result.cpp
#include "core/names.hpp"
#include "stores/payload.hpp"
#include "stores/zookeeper/names.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace holdfast::zookeeper;

// A name that was parsed can be written again, and names the same node.
void check_name(std::string_view text) {
  const auto read = parse_node(text);
  if (!read) return;
  if (read->name != text || read->before(*read)) std::abort();
  if (!read->id) return;
  const auto again = parse_node(prefix_of(*read->id, read->kind) + sequence_text(read->sequence));
  if (!again || again->kind != read->kind || again->sequence != read->sequence ||
      again->id != read->id) {
    std::abort();
  }
}

// Harmless to a terminal, and of one line.
void check_data(std::string_view text) {
  const std::string who = holdfast::stores::payload_in(text);
  if (!who.empty() && holdfast::core::clean_payload(who) != who) std::abort();
  const auto terms = holdfast::stores::permits_in(text);
  if (!terms) return;
  const auto again = holdfast::stores::permits_in(stores::data_of(who, *terms));
  if (!again || again->permits != terms->permits || again->max != terms->max) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_name(text);
  check_data(text);
  return 0;
}
