// Everything exclusive: one set of tests for mutexes, writers, one-permit semaphores and
// leaders, since each of them promises what a mutex does.
#pragma once

#include "contract/contract.hpp"

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::test {

class exclusive_lock {
 public:
  virtual ~exclusive_lock() = default;
  virtual result<lease> acquire(const acquire_options& options = {},
                                std::stop_token token = {}) = 0;
  virtual acquire_awaitable async_acquire(const acquire_options& options = {},
                                          std::stop_token token = {}) = 0;
  virtual void async_acquire(const acquire_options& options, std::stop_token token,
                             acquire_callback done) = 0;
};

struct flavour {
  std::string name;
  needs told_apart_by;
  std::function<std::unique_ptr<exclusive_lock>(const client&, const std::string&,
                                                const lock_options&)>
      make;
  std::function<bool(const capabilities&)> supported;

  friend std::ostream& operator<<(std::ostream& out, const flavour& one) { return out << one.name; }
};

const std::vector<flavour>& flavours();

using exclusive_setup = std::tuple<store_setup, flavour>;

// Every store with the flavours that it needs; in a long run, with all.
std::vector<exclusive_setup> exclusive_setups();

class exclusive_test : public testing::TestWithParam<exclusive_setup>, public engine_fixture {
 protected:
  exclusive_test() : engine_fixture(std::get<0>(GetParam())) {}

  static std::unique_ptr<exclusive_lock> make(const client& client,
                                              const std::string& name = "stock/42",
                                              const lock_options& options = {}) {
    return std::get<1>(GetParam()).make(client, name, options);
  }

  // If the store lacks this flavour, it must say so; the test then ends.
  [[nodiscard]] bool supported() const {
    const client probe = open();
    if (std::get<1>(GetParam()).supported(probe.caps())) return true;
    EXPECT_THAT(make(probe)->acquire({.wait = 0s}), fails_with(errc::unsupported));
    return false;
  }
};

std::string name_of_exclusive(const testing::TestParamInfo<exclusive_setup>& info);

#define HOLDFAST_ON_EVERY_EXCLUSIVE(suite)                                                   \
  class suite : public holdfast::test::exclusive_test {};                                    \
  INSTANTIATE_TEST_SUITE_P(on, suite, testing::ValuesIn(holdfast::test::exclusive_setups()), \
                           holdfast::test::name_of_exclusive)

}  // namespace holdfast::test
