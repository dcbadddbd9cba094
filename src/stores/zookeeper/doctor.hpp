// What the servers in the URL report about themselves ("srvr"), and how `doctor` judges it.
#pragma once

#include "net/connector.hpp"
#include "net/stream.hpp"
#include "stores/flow.hpp"
#include "stores/zookeeper/options.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

// Filled server by server, then judged. Not thread-safe.
class ensemble_health {
 public:
  // `answer`: the answer to "srvr".
  void add(const std::string& server, const result<std::string>& answer);

  // servers, four-letter words, quorum: always all three.
  [[nodiscard]] std::vector<spi::check> checks() const;

 private:
  [[nodiscard]] spi::check servers() const;
  [[nodiscard]] spi::check words() const;
  [[nodiscard]] spi::check quorum() const;

  std::size_t configured_ = 0;
  std::size_t answering_ = 0;
  std::size_t refusing_ = 0;  // the word is not allowed there
  std::size_t idle_ = 0;      // not serving: it has no quorum, or has just started
  std::size_t leaders_ = 0;
  std::size_t followers_ = 0;
  std::size_t standalone_ = 0;
  std::string versions_;
  std::string problems_;
};

// A four-letter word: one question to one server, outside any session. The operator decides which
// of them it may answer; "srvr" is allowed by default.

using stores::flow;
using stores::task;

// unavailable: the server cannot be reached, or does not answer in time.
task<result<std::string>> ask_word(net::network net, net::target where,
                                   std::shared_ptr<const net::tls_context> tls, std::string word,
                                   time_point deadline);

}  // namespace holdfast::zookeeper
