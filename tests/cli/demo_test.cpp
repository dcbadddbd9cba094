// holdfast demo flash-sale: it oversells without a lock, and never with one.
#include "cli/fixture.hpp"

#include <signal.h>

#include <map>

namespace holdfast::cli_test {
namespace {

class flash_sale : public command_line {
 protected:
  // The table's rows by lock: sold, orders, left, oversold, too busy.
  static std::map<std::string, std::vector<long>> rows(const std::string& text) {
    std::map<std::string, std::vector<long>> found;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) {
      std::istringstream cells(line);
      std::string lock;
      std::vector<long> numbers(5, -1);
      cells >> lock;
      for (long& number : numbers) cells >> number;
      if (cells) found[lock] = numbers;
    }
    return found;
  }
};

TEST_F(flash_sale, oversells_without_a_lock_and_is_exact_with_each) {
  const answer got = type({"demo", "flash-sale", "--buyers", "300", "--stock", "60"});
  EXPECT_EQ(got.code, 0) << got.out << got.err;
  const auto table = rows(got.out);
  ASSERT_EQ(table.size(), 5U) << got.out;
  EXPECT_GT(table.at("none")[3], 0) << "the negative control did not oversell";
  for (const char* lock : {"mutex", "fair", "rw", "semaphore"}) {
    const auto& row = table.at(lock);
    EXPECT_EQ(row[0], row[1]) << "every item sold has one order";
    EXPECT_EQ(row[0] + row[2], 60);
    EXPECT_EQ(row[3], 0);
  }
}

TEST_F(flash_sale, leaves_nothing_behind) {
  ASSERT_EQ(type({"demo", "flash-sale", "--buyers", "20", "--lock", "mutex"}).code, 0);
  EXPECT_EQ(shell_.run({"sh", "-c", "ls -d holdfast-sale-* .local 2>/dev/null"}).out, "");
}

TEST_F(flash_sale, works_on_the_engine_that_is_named_and_leaves_no_claims_there) {
  const std::string url = "sqlite:" + (home_ / "sale.db");
  ASSERT_EQ(type({"--url", url, "demo", "flash-sale", "--buyers", "40", "--processes", "2"}).code,
            0);
  EXPECT_EQ(type({"--url", url, "ls", "--json"}).out, "[]\n");
}

TEST_F(flash_sale, an_engine_that_fails_is_122) {
  const answer got =
      type({"--url", "sqlite:" + home_.path(), "demo", "flash-sale", "--lock", "mutex"});
  EXPECT_EQ(got.code, 122);
  EXPECT_EQ(lines(got.err), 1) << got.err;
}

TEST_F(flash_sale, ends_with_a_signal_and_takes_its_processes_along) {
  process sale = begin({"demo", "flash-sale", "--buyers", "2000", "--stock", "100000"});
  ASSERT_TRUE(eventually([&] {
    return !shell_.run({"sh", "-c", "ls -d holdfast-sale-*/*/stock 2>/dev/null"}).out.empty();
  }));
  sale.send(SIGTERM);
  EXPECT_EQ(sale.end().code, 128 + SIGTERM);
  EXPECT_EQ(shell_.run({"sh", "-c", "ls -d holdfast-sale-* 2>/dev/null"}).out, "");
}

}  // namespace
}  // namespace holdfast::cli_test
