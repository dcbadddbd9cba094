#include "torture/assignment.hpp"

#include "torture/plan_json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace holdfast::torture {

std::filesystem::path assignment_file(const std::filesystem::path& folder, std::int32_t process) {
  return folder / ("assignment-" + std::to_string(process));
}
std::filesystem::path record_file(const std::filesystem::path& folder, std::int32_t process) {
  return folder / ("records-" + std::to_string(process));
}
std::filesystem::path board_file(const std::filesystem::path& folder) { return folder / "board"; }

void save(const assignment& one, const std::filesystem::path& folder) {
  const auto path = assignment_file(folder, one.process);
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (made >= 0) ::close(made);
  std::ofstream file(path);
  file << nlohmann::json{{"url", one.url},         {"password", one.password},
                         {"space", one.space},     {"prefix", one.prefix},
                         {"process", one.process}, {"client", one.client},
                         {"started", one.started}, {"plan", to_json(one.wanted)}}
              .dump();
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

assignment load_assignment(const std::filesystem::path& folder, std::int32_t process) {
  std::ifstream file(assignment_file(folder, process));
  const auto read = nlohmann::json::parse(file, nullptr, false);
  if (read.is_discarded()) throw std::runtime_error("no assignment of this torture");
  assignment one;
  read.at("url").get_to(one.url);
  read.at("password").get_to(one.password);
  read.at("space").get_to(one.space);
  read.at("prefix").get_to(one.prefix);
  read.at("process").get_to(one.process);
  read.at("client").get_to(one.client);
  read.at("started").get_to(one.started);
  one.wanted = plan_from(read.at("plan"));
  return one;
}

}  // namespace holdfast::torture
