// Frames whose every byte can be checked.
#include "formats/rdh_payload.h"

#include <gtest/gtest.h>

#include <vector>

namespace rodeo::formats {
namespace {

const Provable kProvable(5);

// A frame of two orbits: three pages and one page, padded to multiples of 256.
std::vector<std::byte> frame(std::uint8_t link = 4) {
  std::vector<std::byte> bytes;
  const auto page = [&](std::uint32_t orbit, std::uint16_t number, bool stop, std::uint16_t memory) {
    const Rdh header = RdhFields{.fee_id = 77,
                                 .offset_next = 256,
                                 .memory_size = memory,
                                 .link_id = link,
                                 .orbit = orbit,
                                 .page_number = number,
                                 .stop = stop}
                           .header();
    const std::size_t at = bytes.size();
    bytes.resize(at + 256);
    header.write(bytes.data() + at);
    write_rdh_payload(kProvable, header, std::span(bytes).subspan(at + kRdhBytes, memory - kRdhBytes));
  };
  page(10, 0, false, 256);
  page(10, 1, false, 128);
  page(10, 2, true, 64);
  page(11, 0, true, 192);
  bytes.resize(bytes.size() - 64);  // a frame ends with its last payload
  return bytes;
}

TEST(RdhPayload, AWholeFrameProvesItself) { EXPECT_EQ(verify_rdh_frame(kProvable, frame(), 4, 2), RdhFrameFinding::good); }

TEST(RdhPayload, EveryFlippedBitOfPayloadIsFound) {
  const auto good = frame();
  for (const std::size_t at : {64u, 100u, 255u, 256u + 64, 256u + 127, 3u * 256 + 64, 3u * 256 + 191}) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto bad = good;
      bad[at] ^= static_cast<std::byte>(1U << bit);
      EXPECT_EQ(verify_rdh_frame(kProvable, bad, 4, 2), RdhFrameFinding::wrong_payload) << at;
    }
  }
}

TEST(RdhPayload, SwappedPagesAreFound) {
  auto bytes = frame();
  std::swap_ranges(bytes.begin(), bytes.begin() + 256, bytes.begin() + 256);
  EXPECT_NE(verify_rdh_frame(kProvable, bytes, 4, 2), RdhFrameFinding::good);
}

TEST(RdhPayload, AFrameOfAnotherLinkOrLengthIsFound) {
  EXPECT_EQ(verify_rdh_frame(kProvable, frame(), 5, 2), RdhFrameFinding::wrong_page);
  EXPECT_EQ(verify_rdh_frame(kProvable, frame(), 4, 3), RdhFrameFinding::fewer_orbits);
  EXPECT_EQ(verify_rdh_frame(kProvable, frame(), 4, 1), RdhFrameFinding::wrong_page);
}

TEST(RdhPayload, AnyCutIsFound) {
  const auto good = frame();
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto found = verify_rdh_frame(kProvable, std::span(good).first(size), 4, 2);
    EXPECT_NE(found, RdhFrameFinding::good) << size;
    // After the last page of its first orbit, with or without padding, the frame is whole so far.
    EXPECT_EQ(found == RdhFrameFinding::fewer_orbits, size == 2 * 256 + 64 || size == 3 * 256) << size;
  }
}

}  // namespace
}  // namespace rodeo::formats
