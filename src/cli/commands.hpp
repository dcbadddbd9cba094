// The commands. Each returns the exit code and has reported why.
#pragma once

#include "cli/arguments.hpp"
#include "cli/connection.hpp"

#include <holdfast/lease.hpp>

#include <stop_token>
#include <string>
#include <string_view>

namespace holdfast::cli {

int run(const context& context, const hold_arguments& how);
int acquire(const context& context, const hold_arguments& how, const token_arguments& where);
int renew_token(const context& context, const token_arguments& what);
int release_token(const context& context, const token_arguments& what);
int elect(const context& context, const hold_arguments& how);
int multi_run(const context& context, const hold_arguments& how);
int latch(const context& context, const latch_arguments& what);
int ls(const context& context, const look_arguments& what);
int show(const context& context, const look_arguments& what);
int release(const context& context, const look_arguments& what);
int revoke(const context& context, const look_arguments& what);
int watch(const context& context, const look_arguments& what);
int doctor(const context& context, const look_arguments& what);
int redis_library();
int serve_engines(const context& context, const serve_arguments& how);
int flash_sale(const context& context, const sale_arguments& how);
int bench(const context& context, const bench_arguments& how);
int torture(const context& context, const torture_arguments& how);

// What --help prints: first what it is for, then examples, then the options. `topic`: a command as typed, "run" or
// "multi run"; the overview where it is empty.
std::string help_about(std::string_view topic);

// Of run, and of acquire: one lock, shared or not, or permits of a semaphore.
result<lease> take(const hold_arguments& how, const client& client, std::stop_token token);
// Reports an acquisition that failed; returns the exit code.
int not_granted(const hold_arguments& how, const std::string& what, const engine& engine,
                const error& why);
// The same for an acquisition that a signal ended.
int withdrawn(int signal, const std::string& what, const engine& engine, const std::string& action);

}  // namespace holdfast::cli
