// A four-letter word: one question to one server, outside any session. What it is allowed to answer
// is the operator's choice; "srvr" is, unless it was taken away.
#pragma once

#include "net/connector.hpp"
#include "net/stream.hpp"
#include "stores/flow.hpp"
#include "stores/zookeeper/options.hpp"

#include <holdfast/result.hpp>

#include <memory>
#include <string>

namespace holdfast::zookeeper {

using stores::flow;
using stores::task;

// unavailable: the server is not reached, or does not answer in time.
task<result<std::string>> ask_word(net::network net, net::target where,
                                   std::shared_ptr<const net::tls_context> tls, std::string word,
                                   time_point deadline);

}  // namespace holdfast::zookeeper
