#include "router/front_end/link_claims.h"

#include <gtest/gtest.h>

#include <array>

namespace rodeo::router {
namespace {

constexpr std::array<Fid, 3> kLinks{Fid{0x1000000000008000}, Fid{0x1000000000018000}, Fid{0x1000000000028000}};

template <typename T>
std::string code_of(const Result<T>& result) {
  return result ? "" : result.error().code;
}

TEST(LinkClaims, ALinkHasOneOwnerUntilHeLetsGo) {
  LinkClaims claims(kLinks);
  EXPECT_EQ(claims.claim(1, "first", std::array{kLinks[2], kLinks[0]}).value(), (std::vector<std::size_t>{2, 0}));
  const auto second = claims.claim(2, "second", std::array{kLinks[0]});
  EXPECT_EQ(code_of(second), "transport.link_owned");
  EXPECT_NE(second.error().what.find("belongs to first"), std::string::npos) << second.error().what;
  EXPECT_TRUE(claims.claim(2, "second", std::array{kLinks[1]}));
  claims.release(1);
  EXPECT_EQ(claims.owner(0), 0U);
  EXPECT_EQ(claims.owner(1), 2U);
  EXPECT_TRUE(claims.claim(3, "third", std::array{kLinks[0], kLinks[2]}));
}

TEST(LinkClaims, AClaimThatIsRefusedTakesNothing) {
  LinkClaims claims(kLinks);
  EXPECT_EQ(code_of(claims.claim(1, "first", std::array{kLinks[0], Fid{0x1000000000038000}})), "transport.unknown_link");
  EXPECT_TRUE(claims.claim(2, "second", std::array{kLinks[1]}));
  EXPECT_EQ(code_of(claims.claim(3, "third", std::array{kLinks[0], kLinks[1]})), "transport.link_owned");
  for (const std::size_t link : {0, 2}) EXPECT_EQ(claims.owner(link), 0U);
}

}  // namespace
}  // namespace rodeo::router
