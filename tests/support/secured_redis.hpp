// Redis servers with TLS and users: what a locked-down installation requires of its clients.
#pragma once

#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/tls_files.hpp"

#include <string>
#include <vector>

namespace holdfast::test {

// The data servers' administrator, also used for replication; a user for locks with the rights that
// docs/stores/redis.md names; and the sentinels' own.
inline constexpr const char* admin_password = "servers-own";
inline constexpr const char* shop_password = "shop-word";
inline constexpr const char* watcher_password = "watcher-word";
inline constexpr const char* sentinels_password = "sentinels-own";

inline std::vector<std::string> tls_arguments(const tls_files::pair& with, const tls_files& files) {
  return {"--tls-cert-file",    with.cert,         "--tls-key-file",     with.key,
          "--tls-ca-cert-file", files.authority(), "--tls-auth-clients", "no"};
}

// As arguments of ACL SETUSER.
inline std::vector<std::string> rights_of_shop() {
  return {"~holdfast:*", "&holdfast:*", "+@all", "-@admin", "-@dangerous", "+info", "+role"};
}

inline redis_options secured_server(const tls_files::pair& with, const tls_files& files) {
  redis_options options{
      .tls = true, .arguments = tls_arguments(with, files), .admin = {"-a", admin_password}};
  options.arguments.insert(options.arguments.end(),
                           {"--tls-replication", "yes", "--requirepass", admin_password,
                            "--masterauth", admin_password});
  options.arguments.insert(options.arguments.end(),
                           {"--user", "shop", "on", std::string(">") + shop_password});
  for (const std::string& each : rights_of_shop()) options.arguments.push_back(each);
  return options;
}

// `sentinel`: the certificate of the sentinels, which may differ from the servers'.
inline sentinels_options secured_sentinels(const tls_files::pair& server,
                                           const tls_files::pair& sentinel,
                                           const tls_files& files) {
  sentinels_options options;
  options.servers = secured_server(server, files);
  options.tls = true;
  options.lines = {"tls-cert-file " + sentinel.cert,
                   "tls-key-file " + sentinel.key,
                   "tls-ca-cert-file " + files.authority(),
                   "tls-auth-clients no",
                   "tls-replication yes",
                   std::string("requirepass ") + sentinels_password,
                   std::string("sentinel sentinel-pass ") + sentinels_password,
                   std::string("sentinel auth-pass stock ") + admin_password,
                   std::string("user watcher on >") + watcher_password +
                       " &+switch-master -@all +sentinel|get-master-addr-by-name "
                       "+sentinel|master +subscribe +unsubscribe +role +info +ping"};
  options.admin = {"-a", sentinels_password, "--tls", "--cacert", files.authority()};
  return options;
}

}  // namespace holdfast::test
