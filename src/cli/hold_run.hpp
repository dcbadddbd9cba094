// run, elect and multi run alike: find the command, take what is asked for, run the command under
// it, give it back.
#pragma once

#include "cli/arguments.hpp"
#include "cli/command_lease.hpp"
#include "cli/connection.hpp"

#include <holdfast/client.hpp>
#include <holdfast/lease.hpp>

#include <functional>
#include <stop_token>
#include <string>

namespace holdfast::cli {

// How a command takes its lock; may throw lock_error. Only its acquisition is waited for under the
// token.
using take_lock = std::function<result<command_lease>(const client&, std::stop_token)>;

// One lock, shared or not, or permits of a semaphore.
result<lease> take(const hold_arguments& how, const client& client, std::stop_token token);

// An acquisition that failed, told, as an exit code.
int not_granted(const hold_arguments& how, const std::string& what, const std::string& engine,
                const error& why);

// The exit code. `what`: the lock or locks, for people.
int run_holding(const context& context, const hold_arguments& how, const std::string& what,
                const take_lock& take);

}  // namespace holdfast::cli
