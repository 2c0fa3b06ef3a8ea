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

// RFC 4231, cases 1 to 4, 6 and 7; a key as long as a block, and a longer one.
TEST(HmacSha256, IsThatOfTheStandardsExamples) {
  const auto mac = [](const std::string& key, const std::string& message) {
    std::string text;
    for (const std::byte byte : hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(message)))) {
      for (const unsigned digit : {std::to_integer<unsigned>(byte) >> 4, std::to_integer<unsigned>(byte) & 15})
        text += "0123456789abcdef"[digit];
    }
    return text;
  };
  std::string counting;
  for (char i = 1; i <= 25; ++i) counting += i;
  EXPECT_EQ(mac(std::string(20, '\x0b'), "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(mac("Jefe", "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(mac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(mac(counting, std::string(50, '\xcd')), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(mac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(mac(std::string(131, '\xaa'),
                "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
                "hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(HmacSha256, AKeyOfABlockIsTakenAsItIs) {
  const std::string block(64, 'k');
  const std::string longer(65, 'k');
  const auto key = std::as_bytes(std::span(block));
  EXPECT_NE(hmac_sha256(key, {}), hmac_sha256(sha256(key), {}));
  EXPECT_EQ(hmac_sha256(std::as_bytes(std::span(longer)), {}), hmac_sha256(sha256(std::as_bytes(std::span(longer))), {}));
}

}  // namespace
}  // namespace rodeo::base
