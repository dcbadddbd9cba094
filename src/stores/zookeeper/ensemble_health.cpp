#include "stores/zookeeper/ensemble_health.hpp"

namespace holdfast::zookeeper {

namespace {

using status = spi::check::status;

std::string field(const std::string& text, const std::string& name) {
  const auto at = text.find(name);
  if (at == std::string::npos) return {};
  const auto from = at + name.size();
  return text.substr(from, text.find_first_of(",\r\n", from) - from);
}

}  // namespace

void ensemble_health::add(const std::string& server, const result<std::string>& answer) {
  ++configured_;
  if (!answer) {
    problems_ += "; " + server + ": " + answer.error().detail;
    return;
  }
  ++answering_;
  const std::string mode = field(*answer, "Mode: ");
  const bool idle = answer->find("not currently serving") != std::string::npos;
  if (idle) ++idle_;
  if (mode.empty() && !idle) ++refusing_;
  if (mode == "leader") ++leaders_;
  if (mode == "follower" || mode == "observer") ++followers_;
  if (mode == "standalone") ++standalone_;
  const std::string version = field(*answer, "Zookeeper version: ");
  const std::string number = version.substr(0, version.find('-'));
  if (!number.empty() && versions_.find(number) == std::string::npos) {
    versions_ += (versions_.empty() ? "" : ", ") + number;
  }
}

std::vector<spi::check> ensemble_health::checks() const { return {servers(), words(), quorum()}; }

spi::check ensemble_health::servers() const {
  spi::check check{"servers", status::ok, {}, {}};
  check.detail = std::to_string(answering_) + " of " + std::to_string(configured_) + " answer" +
                 (versions_.empty() ? "" : ", version " + versions_);
  if (answering_ < configured_) {
    check.state = status::warn;
    check.detail += problems_;
    check.remedy = "start the servers that do not answer, or take them out of the URL";
  }
  if (answering_ == 0) check.state = status::fail;
  return check;
}

spi::check ensemble_health::words() const {
  if (answering_ == 0) return {"four-letter words", status::warn, "nobody answers", {}};
  if (refusing_ == 0) return {"four-letter words", status::ok, "srvr is answered", {}};
  return {"four-letter words", status::warn,
          "srvr is refused: the health of the ensemble cannot be seen",
          "4lw.commands.whitelist=srvr in zoo.cfg"};
}

// A follower that serves has a leader, whether or not that one stands in the URL.
spi::check ensemble_health::quorum() const {
  if (standalone_ > 0) {
    return {"quorum", status::warn, "a standalone server: when it is down, there are no locks",
            "three or five servers for what must stay up"};
  }
  if (leaders_ > 0) return {"quorum", status::ok, "a leader is there", {}};
  if (followers_ > 0) {
    return {"quorum", status::warn, "none of the servers in the URL leads",
            "name all servers of the ensemble in the URL"};
  }
  if (idle_ > 0) {
    return {
        "quorum", status::fail,
        std::to_string(idle_) + " of " + std::to_string(configured_) +
            " answer that they are not serving: there is no majority, or they are just starting",
        "start the other servers of the ensemble; see its log for what keeps them apart"};
  }
  return {"quorum", status::warn, "not known: no server says who leads",
          "the check of sessions tells whether they serve"};
}

}  // namespace holdfast::zookeeper
