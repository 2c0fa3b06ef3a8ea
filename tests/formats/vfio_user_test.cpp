#include "formats/vfio_user.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace {

using namespace rodeo::formats::vfio_user;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::expected<Request, int> decode(std::span<const std::byte> message) {
  return decode_request(read_header(message), message.subspan(kHeaderBytes));
}

TEST(VfioUser, ARegionWriteIsWrittenAsTheProtocolSays) {
  MessageWriter writer;
  const auto data = bytes_of({0x80, 0, 0, 0});
  writer.request(0x1234, RegionWrite{{.offset = 0x20c, .region = 2, .count = 4}, data}, Header::kNoReply);
  EXPECT_EQ(std::vector(writer.bytes().begin(), writer.bytes().end()),
            bytes_of({0x34, 0x12, 10, 0, 36, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0,  // header
                      0x0c, 2,    0,  0, 0,  0, 0, 0, 2,    0, 0, 0, 4, 0, 0, 0,  // offset, region, count
                      0x80, 0,    0,  0}));
}

TEST(VfioUser, ADmaMapIsReadAsTheProtocolSays) {
  const auto message = bytes_of({1,  0, 2, 0, 48, 0, 0, 0, 0, 0, 0,  0,  0, 0, 0, 0,  //
                                 32, 0, 0, 0, 3,  0, 0, 0, 0, 0, 32, 0,  0, 0, 0, 0,  //
                                 0,  0, 0, 0, 1,  0, 0, 0, 0, 0, 0,  64, 0, 0, 0, 0});
  const auto request = decode(message);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(
      std::get<DmaMap>(*request),
      (DmaMap{.flags = DmaMap::kRead | DmaMap::kWrite, .offset = 0x200000, .address = 0x100000000, .size = 0x40000000}));
}

TEST(VfioUser, VersionDataComeBackAsWritten) {
  const Capabilities capabilities{
      .max_msg_fds = 8, .max_data_xfer_size = 65536, .max_dma_maps = 7, .pgsizes = 0x1000, .write_multiple = true};
  EXPECT_EQ(parse_version_text(version_text(capabilities)), capabilities);
}

TEST(VfioUser, CapabilitiesThatAreNotNamedHaveTheDefaultsOfTheProtocol) {
  EXPECT_EQ(parse_version_text(R"({"capabilities":{"migration":{"pgsize":4096}}, "more": 1})"), Capabilities{});
  EXPECT_EQ(parse_version_text(""), Capabilities{});
  EXPECT_EQ(parse_version_text(R"({"capabilities":{"max_msg_fds":-1}})").error(), EPROTO);
  EXPECT_EQ(parse_version_text("[]").error(), EPROTO);
  EXPECT_EQ(parse_version_text(std::string(50'000, '[')).error(), EPROTO);
}

TEST(VfioUser, EveryLengthThatDoesNotFitIsRefused) {
  const std::array<Request, 12> requests{Version{}, DmaMap{},  DmaUnmap{},   DeviceInfo{},  RegionInfo{}, RegionIoFds{},
                                         IrqInfo{}, SetIrqs{}, RegionRead{}, RegionWrite{}, WriteMulti{}, DeviceFeature{}};
  for (const Request& request : requests) {
    MessageWriter writer;
    writer.request(1, request);
    EXPECT_TRUE(decode(writer.bytes()).has_value()) << request.index();
    // A VERSION may end after its numbers; other messages need all fields.
    const std::size_t whole = std::holds_alternative<Version>(request) ? kHeaderBytes + 4 : writer.bytes().size();
    for (std::size_t cut = kHeaderBytes; cut < whole; ++cut)
      EXPECT_EQ(decode(writer.bytes().first(cut)).error(), EINVAL) << request.index() << " cut at " << cut;
  }
}

TEST(VfioUser, CountsBeyondTheMessageAreRefused) {
  MessageWriter writer;
  const auto data = bytes_of({1, 2, 3, 4});
  writer.request(1, RegionWrite{{.offset = 0, .region = 0, .count = 4}, data});
  std::vector<std::byte> message(writer.bytes().begin(), writer.bytes().end());
  message[kHeaderBytes + 12] = std::byte{5};
  EXPECT_EQ(decode(message).error(), EINVAL);

  writer.clear();
  const std::array writes{SmallWrite{{.offset = 0x204, .region = 0, .count = 4}, 1}};
  writer.write_multi(1, writes);
  message.assign(writer.bytes().begin(), writer.bytes().end());
  ASSERT_TRUE(decode(message).has_value());
  EXPECT_EQ(std::get<WriteMulti>(*decode(message))[0], writes[0]);
  message[kHeaderBytes + 7] = std::byte{0x80};
  EXPECT_EQ(decode(message).error(), EINVAL);
}

TEST(VfioUser, CommandsThatAClientDoesNotSendAreNotSupported) {
  for (const std::uint16_t command :
       {std::uint16_t{0}, std::uint16_t{11}, std::uint16_t{12}, std::uint16_t{14}, std::uint16_t{999}}) {
    Header header{.command = command};
    EXPECT_EQ(decode_request(header, bytes_of({0, 0, 0, 0})).error(), ENOTSUP);
  }
}

TEST(VfioUser, RegionInfoTellsHowMuchRoomItsAreasNeed) {
  const std::array areas{Area{0, 4096}, Area{8192, 4096}};
  const RegionInfo info{.flags = RegionInfo::kRead | RegionInfo::kMmap, .index = 2, .size = 65536};
  MessageWriter writer;
  const Header asked{.id = 9, .command = 5, .size = 48};
  writer.reply(asked, info, areas, 32);
  auto reply = decode_region_info(writer.bytes().subspan(kHeaderBytes));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->info.argsz, region_info_bytes(2));
  EXPECT_EQ(reply->info.cap_offset, RegionInfo::kBytes);  // QEMU 11 requires this offset
  EXPECT_FALSE(reply->areas.has_value());

  writer.clear();
  writer.reply(asked, info, areas, reply->info.argsz);
  reply = decode_region_info(writer.bytes().subspan(kHeaderBytes));
  ASSERT_TRUE(reply && reply->areas);
  EXPECT_EQ(*reply->areas, std::vector(areas.begin(), areas.end()));
}

TEST(VfioUser, ACapabilityChainThatDoesNotEndIsRefused) {
  MessageWriter writer;
  const std::array areas{Area{0, 4096}};
  writer.reply(Header{.command = 5}, RegionInfo{}, areas, 4096);
  std::vector<std::byte> payload(writer.bytes().begin() + kHeaderBytes, writer.bytes().end());
  payload[32 + 4] = std::byte{32};  // next: itself
  EXPECT_FALSE(decode_region_info(payload).has_value());
  payload[32 + 4] = std::byte{0xff};  // the next capability is beyond the reply
  EXPECT_FALSE(decode_region_info(payload).has_value());
}

TEST(VfioUser, AnErrorReplyIsAHeaderAlone) {
  MessageWriter writer;
  writer.error(Header{.id = 77, .command = 3, .size = 40}, ENOENT);
  EXPECT_EQ(read_header(writer.bytes()), (Header{.id = 77, .command = 3, .size = 16, .flags = 0x21, .error = ENOENT}));
  EXPECT_EQ(writer.bytes().size(), kHeaderBytes);
}

TEST(VfioUser, RepliesStandBehindEachOther) {
  MessageWriter writer;
  const auto room = writer.reply_read(Header{.id = 1, .command = 9}, {.offset = 4, .region = 0, .count = 4});
  std::memset(room.data(), 0x5a, room.size());
  writer.reply(Header{.id = 2, .command = 13});
  const Header first = read_header(writer.bytes());
  EXPECT_EQ(first.size, 36U);
  const auto data = decode_region_data(writer.bytes().subspan(kHeaderBytes, first.size - kHeaderBytes));
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ((*data)[3], std::byte{0x5a});
  EXPECT_EQ(read_header(writer.bytes().subspan(first.size)).id, 2);
}

}  // namespace
