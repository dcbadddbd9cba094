// See the header.
#include "stores/redis/topology/sentinel_answer.hpp"

#include "stores/redis/topology/parse_number.hpp"

namespace holdfast::redis {

namespace {

// From a flat list of names and values.
std::string_view field(const reply& list, std::string_view name) noexcept {
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
    if (list.elements[i].words() == name) return list.elements[i + 1].words();
  }
  return {};
}

}  // namespace

command sentinel_question(std::string_view name) {
  command both{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name};
  both.then(command{"SENTINEL", "MASTER", name});
  return both;
}

sentinel_answer read_sentinel(const reply& answer) {
  sentinel_answer found;
  if (answer.elements.size() != 2) {
    found.refusal = "unexpected reply";
    return found;
  }
  const reply& address = answer.elements[0];
  const reply& facts = answer.elements[1];
  if (address.is_error() || facts.is_error()) {
    if (facts.text.find("No such master") != std::string::npos) {
      found.what = sentinel_answer::kind::no_such_name;
    }
    found.refusal = address.is_error() ? address.text : facts.text;
    return found;
  }
  if (address.elements.size() != 2) {
    found.what = sentinel_answer::kind::no_such_name;
    return found;
  }
  const auto port = parse_number<std::uint16_t>(address.elements[1].words());
  const auto epoch = parse_number<std::int64_t>(field(facts, "config-epoch"));
  if (!port || *port == 0 || !epoch || address.elements[0].words().empty()) {
    found.refusal = "unexpected reply";
    return found;
  }
  found.what = sentinel_answer::kind::found;
  found.master = {std::string(address.elements[0].words()), *port, {}};
  found.epoch = *epoch;
  return found;
}

bool switches(std::string_view payload, std::string_view name) noexcept {
  return payload.starts_with(name) && payload.size() > name.size() && payload[name.size()] == ' ';
}

}  // namespace holdfast::redis
