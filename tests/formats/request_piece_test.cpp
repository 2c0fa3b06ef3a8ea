// Pieces of requests and replies, by the example of docs/reference/formats/request-reply.md.
#include "formats/request_piece.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace rodeo::formats {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

const std::vector<std::byte> kExample =
    bytes_of({3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0x0a, 0x0b, 0x0c});

std::string refusal(std::vector<std::byte> page) {
  const auto piece = decode_piece(page);
  return piece ? "none" : piece.error().message();
}

std::vector<std::byte> with(std::size_t at, int value) {
  auto page = kExample;
  page[at] = static_cast<std::byte>(value);
  return page;
}

TEST(RequestPiece, IsAsTheExampleSays) {
  const PieceHead head{.number = 3, .type = MessageType::request, .code = 2, .message_bytes = 3, .offset = 0, .credit = 64};
  const auto piece = decode_piece(kExample);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->head, head);
  EXPECT_EQ(piece->bytes.size(), 3U);
  const auto written = encode_piece_head(head);
  EXPECT_TRUE(std::equal(written.begin(), written.end(), kExample.begin()));
}

TEST(RequestPiece, SaysWhatIsWrong) {
  EXPECT_EQ(refusal({kExample.begin(), kExample.begin() + 23}), "byte 0: head of a piece needs 24 bytes, 23 are there");
  EXPECT_NE(refusal(with(8, 0)), "none");
  EXPECT_NE(refusal(with(8, 5)), "none");
  EXPECT_NE(refusal(with(9, 1)), "none");
  EXPECT_NE(refusal(with(12, 2)), "none");  // the piece has more bytes than the message
  EXPECT_NE(refusal(with(16, 1)), "none");  // the piece begins after the end of the message
  EXPECT_NE(refusal(with(16, 4)), "none");
  EXPECT_NE(refusal({kExample.begin(), kExample.begin() + 24}), "none");  // no bytes, although the message has some
  EXPECT_NE(refusal(with(8, 3)), "none");                                 // a refusal has no bytes
  EXPECT_NE(refusal(with(8, 4)), "none");
}

}  // namespace
}  // namespace rodeo::formats
