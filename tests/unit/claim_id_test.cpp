// Claim ids: how they are printed and made.
#include "support/engine_bench.hpp"

#include <holdfast/spi/claim.hpp>

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace holdfast::test {
namespace {

using spi::claim_id;
using spi::public_id;
using spi::to_hex;

claim_id counting_id() {
  claim_id id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i);
  return id;
}

TEST(claim_id, hex_is_the_bytes_in_order) {
  // Broken: a store writes one id and looks for another.
  EXPECT_EQ(to_hex(counting_id()), "000102030405060708090a0b0c0d0e0f");
  EXPECT_EQ(to_hex(claim_id{}), std::string(32, '0'));
}

TEST(claim_id, the_public_id_does_not_change_between_versions) {
  // Broken: an operator's script that kept a public id no longer finds the claim.
  EXPECT_EQ(public_id(counting_id()).size(), 16U);
  EXPECT_EQ(public_id(counting_id()), public_id(counting_id()));
}

TEST(claim_id, the_public_id_does_not_contain_the_capability) {
  // Broken: anyone who reads `show` can release another's lock.
  const std::string secret = to_hex(counting_id());
  const std::string shown = public_id(counting_id());
  EXPECT_EQ(secret.find(shown), std::string::npos);
  for (std::size_t i = 0; i + 4 <= shown.size(); ++i) {
    EXPECT_EQ(secret.find(shown.substr(i, 4)), std::string::npos) << i;
  }
}

TEST(claim_id, every_bit_of_the_id_changes_the_public_one) {
  // Broken: claims that differ look alike.
  std::set<std::string> seen{public_id(counting_id())};
  for (std::size_t bit = 0; bit < 128; ++bit) {
    claim_id other = counting_id();
    other.bytes[bit / 8] = static_cast<std::uint8_t>(other.bytes[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_TRUE(seen.insert(public_id(other)).second) << bit;
  }
}

TEST(claim_id, no_two_claims_of_an_engine_share_one) {
  // Broken: two acquisitions release each other's lock.
  engine_bench bench;
  std::set<claim_id> seen;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(bench.engine->new_claim_id()).second);
}

TEST(claim_id, an_id_has_a_hundred_and_twenty_eight_random_bits) {
  // Broken: half of the id is constant, and can be guessed.
  engine_bench bench;
  std::array<std::uint8_t, 16> always_set{};
  std::array<std::uint8_t, 16> ever_set{};
  always_set.fill(0xff);
  for (int i = 0; i < 100; ++i) {
    const claim_id id = bench.engine->new_claim_id();
    for (std::size_t byte = 0; byte < 16; ++byte) {
      always_set[byte] = always_set[byte] & id.bytes[byte];
      ever_set[byte] = ever_set[byte] | id.bytes[byte];
    }
  }
  for (std::size_t byte = 0; byte < 16; ++byte) {
    EXPECT_EQ(always_set[byte], 0) << byte;
    EXPECT_EQ(ever_set[byte], 0xff) << byte;
  }
}

}  // namespace
}  // namespace holdfast::test
