// SHA-256: the examples of the standard, and lengths around the ends of blocks.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rodeo::base {
namespace {

std::string hash(const std::string& text) { return sha256_hex(std::as_bytes(std::span(text))); }

TEST(Sha256, IsThatOfTheStandardsExamples) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EveryLengthHasAHashOfItsOwn) {
  std::set<std::string> seen;
  for (std::size_t size = 0; size < 200; ++size) EXPECT_TRUE(seen.insert(hash(std::string(size, 'x'))).second) << size;
}

}  // namespace
}  // namespace rodeo::base
