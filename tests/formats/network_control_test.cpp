#include "formats/network_control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace rodeo::formats;
using rodeo::Fid;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<std::byte> written(const ControlMessage& message) {
  std::vector<std::byte> bytes;
  append_control(bytes, message);
  return bytes;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t at, T value) {
  ASSERT_LE(at + sizeof value, bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Adds bytes to a message, or removes some, and corrects its size.
std::vector<std::byte> resized(std::vector<std::byte> bytes, std::ptrdiff_t by) {
  bytes.resize(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(bytes.size()) + by));
  put(bytes, 0, static_cast<std::uint32_t>(bytes.size() - kControlHeaderBytes));
  return bytes;
}

std::string refusal(std::span<const std::byte> bytes) {
  const auto taken = parse_control(bytes);
  return taken ? *taken ? "a message" : "nothing yet" : taken.error().message();
}

ControlHello a_hello() {
  ControlHello hello{.secret_required = true, .instance = 7, .program = "rodeo"};
  for (std::size_t i = 0; i < hello.nonce.size(); ++i) hello.nonce[i] = static_cast<std::byte>(i);
  return hello;
}

ControlSubscribe a_subscribe() {
  return {.session = 0x1122334455667788,
          .taken = 0x99,
          .monitor = true,
          .unbuffered = false,
          .trigger_list = true,
          .name = "readout0",
          .provider = "tcp",
          .page_bytes = 65536,
          .pages = 64,
          .address = bytes_of({1, 2, 0xff}),
          .links = {Fid::of(0, 1, 2, 3), Fid::of(0, 1, 2, 4), Fid::of(0, 1, 1, 0)}};
}

std::vector<ControlMessage> one_of_each() {
  return {a_hello(),
          ControlProof{{std::byte{1}, std::byte{0xfe}}},
          a_subscribe(),
          ControlAccept{.resumed = true, .token = {std::byte{9}}, .address = bytes_of({4}), .page_bytes = 4096, .pages = 2},
          ControlRefuse{"transport.secret", "no"},
          ControlCredit{.pages = 1ULL << 40, .taken = 3},
          ControlEnd{3, {{"felix_sequence_gaps", 1ULL << 40}, {"felix.0_not_taken", 2}}},
          ControlLeave{},
          ControlClaim{.name = "detector", .links = {Fid{0x1000000000408000}, Fid{0x1000000000418000}}},
          ControlClaimed{},
          ControlSend{.number = 7, .link = 1, .message = bytes_of({1, 2, 3})},
          ControlAnswer{.number = 7, .code = "router.front_end_full", .what = "no room", .answer = bytes_of({4})},
          ControlCall{.pages = 64, .requests = 65'536, .name = "node1", .provider = "tcp", .address = bytes_of({5})}};
}

// Offsets of the fields in a SUBSCRIBE message.
constexpr std::size_t kFlags = 24;
constexpr std::size_t kPageBytes = 26;
constexpr std::size_t kPages = 30;
constexpr std::size_t kName = 34;
constexpr std::size_t kProvider = kName + 2 + 8;
constexpr std::size_t kAddress = kProvider + 2 + 3;
constexpr std::size_t kLinks = kAddress + 2 + 3;

TEST(NetworkControl, IsWrittenAsInTheWorkedExample) {
  EXPECT_EQ(written(a_hello()),
            bytes_of({0x39, 0,    0,    0,    1,    0,    0,    0,    0x52, 0x43, 0x54, 0x4c, 3,    0,    1,    0,    1,
                      0,    7,    0,    0,    0,    0,    0,    0,    0,    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
                      0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
                      0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 5,    0,    0x72, 0x6f, 0x64, 0x65, 0x6f}));
  EXPECT_EQ(written(ControlCredit{64, 3}),
            bytes_of({16, 0, 0, 0, 6, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(NetworkControl, WhatIsWrittenIsRead) {
  for (const ControlMessage& message : one_of_each()) {
    const auto bytes = written(message);
    const auto taken = parse_control(bytes);
    ASSERT_TRUE(taken && *taken) << message.index();
    EXPECT_EQ((*taken)->message, message);
    EXPECT_EQ((*taken)->bytes, bytes.size());
  }
}

TEST(NetworkControl, MessagesFollowEachOther) {
  std::vector<std::byte> bytes;
  for (const ControlMessage& message : one_of_each()) append_control(bytes, message);
  std::span<const std::byte> rest(bytes);
  for (const ControlMessage& message : one_of_each()) {
    const auto taken = parse_control(rest);
    ASSERT_TRUE(taken && *taken);
    EXPECT_EQ((*taken)->message, message);
    rest = rest.subspan((*taken)->bytes);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(NetworkControl, WhatIsNotWholeIsWaitedFor) {
  for (const ControlMessage& message : one_of_each()) {
    const auto bytes = written(message);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(refusal(std::span(bytes).first(size)), "nothing yet") << message.index() << ": " << size;
  }
}

TEST(NetworkControl, AMessageHasTheSizeOfItsFields) {
  for (const ControlMessage& message : one_of_each()) {
    const auto bytes = written(message);
    EXPECT_FALSE(parse_control(resized(bytes, 1)).has_value()) << message.index();
    for (std::size_t less = 1; less + kControlHeaderBytes <= bytes.size(); ++less)
      EXPECT_FALSE(parse_control(resized(bytes, -static_cast<std::ptrdiff_t>(less))).has_value()) << message.index();
  }
}

TEST(NetworkControl, AHeaderThatCannotBeIsRefusedAtOnce) {
  const auto header = [](std::uint32_t size, std::uint16_t type, std::uint16_t reserved) {
    std::vector<std::byte> bytes(kControlHeaderBytes);
    put(bytes, 0, size);
    put(bytes, 4, type);
    put(bytes, 6, reserved);
    return bytes;
  };
  EXPECT_EQ(refusal(header(kMostControlBytes + 1, 3, 0)),
            "byte 0: size of a message is 1048577, at most 1048576 is possible");
  EXPECT_NE(refusal(header(0, 0, 0)).find("type of a message"), std::string::npos);
  EXPECT_NE(refusal(header(0, 14, 0)).find("type of a message"), std::string::npos);
  EXPECT_NE(refusal(header(0, 9, 1)).find("reserved"), std::string::npos);
  // The largest valid size of each type; the loop also tries one byte more.
  const std::vector<std::uint32_t> most{4096, 32, 372 + 8 * 65535 - 2, 284, 580, 16, 10 + 64 * 74, 0};
  for (std::size_t i = 0; i < most.size(); ++i) {
    const auto type = static_cast<std::uint16_t>(i + 1);
    EXPECT_NE(refusal(header(most[i] + 1, type, 0)).find("size of a message"), std::string::npos) << type;
    if (most[i] > 0) {
      EXPECT_EQ(refusal(header(most[i], type, 0)), "nothing yet") << type;
    }
  }
  const std::string http = "GET / HTTP/1.1\r\n";
  EXPECT_NE(refusal(std::as_bytes(std::span(http))).find("size of a message"), std::string::npos);
}

TEST(NetworkControl, OfAnotherVersionOnlyTheVersionIsRead) {
  ControlHello hello = a_hello();
  hello.version = kControlVersion + 1;
  hello.page_version = 5;
  const ControlHello seen{.version = kControlVersion + 1};
  const auto bytes = written(hello);
  for (const auto& message : {bytes, resized(bytes, 1000), resized(bytes, 6 - 57)}) {
    const auto taken = parse_control(message);
    ASSERT_TRUE(taken && *taken);
    EXPECT_EQ((*taken)->message, ControlMessage(seen));
  }
  EXPECT_EQ(refusal(resized(bytes, 5 - 57)), "byte 12: version needs 2 bytes, 1 are there");
}

TEST(NetworkControl, AHelloHasAMarkerAndNoUnknownFlag) {
  auto bytes = written(a_hello());
  put(bytes, 8, std::uint32_t{0x4C544353});
  EXPECT_NE(refusal(bytes).find("marker"), std::string::npos);
  bytes = written(a_hello());
  put(bytes, 16, std::uint16_t{2});
  EXPECT_NE(refusal(bytes).find("flags"), std::string::npos);
}

TEST(NetworkControl, UnknownFlagsAreRefused) {
  auto bytes = written(a_subscribe());
  put(bytes, kFlags, std::uint16_t{8});
  EXPECT_NE(refusal(bytes).find("flags"), std::string::npos);
  bytes = written(ControlAccept{});
  put(bytes, 8, std::uint16_t{2});
  EXPECT_NE(refusal(bytes).find("flags"), std::string::npos);
}

TEST(NetworkControl, LengthsAreNotTrusted) {
  for (const std::size_t field : {kName, kProvider, kAddress, kLinks}) {
    for (const unsigned length : {60U, 1000U, 65'535U}) {
      auto bytes = written(a_subscribe());
      put(bytes, field, static_cast<std::uint16_t>(length));
      EXPECT_FALSE(parse_control(bytes).has_value()) << field << " " << length;
    }
  }
}

TEST(NetworkControl, MessagesToFrontEndsMayBeAsLongAsTheirNumbersCanTell) {
  ControlClaim claim{.name = std::string(64, 'n')};
  for (std::uint64_t i = 0; i < 65'535; ++i) claim.links.push_back(Fid{i});
  const std::vector<ControlMessage> longest{
      claim, ControlSend{.number = ~0ULL, .link = 65'535, .message = std::vector<std::byte>(65'535)},
      ControlAnswer{.number = 1,
                    .code = std::string(64, 'c'),
                    .what = std::string(512, 'w'),
                    .answer = std::vector<std::byte>(65'535)}};
  for (const ControlMessage& message : longest) {
    const auto bytes = written(message);
    const auto taken = parse_control(bytes);
    ASSERT_TRUE(taken && *taken) << message.index();
    EXPECT_EQ((*taken)->message, message);
    EXPECT_NE(refusal(resized(bytes, 1)).find("size of a message"), std::string::npos) << message.index();
  }
}

TEST(NetworkControl, EveryBoundHolds) {
  ControlSubscribe most = a_subscribe();
  most.name = std::string(64, 'n');
  most.provider = std::string(16, 'p');
  most.address.resize(256);
  most.page_bytes = 1U << 20;
  most.pages = 65'535;
  most.links.clear();
  for (std::uint64_t i = 0; i < 65'535; ++i) most.links.push_back(Fid{i});
  const auto bytes = written(most);
  const auto taken = parse_control(bytes);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->message, ControlMessage(most));

  // Enlarges a field of the message by one more than its limit, and the message with it.
  const auto with = [](std::size_t at, std::size_t room, std::uint16_t length) {
    auto message = written(a_subscribe());
    message.insert(message.begin() + static_cast<std::ptrdiff_t>(at) + 2, length - room, std::byte{'x'});
    put(message, at, length);
    return resized(std::move(message), 0);
  };
  EXPECT_EQ(refusal(with(kName, 8, 64)), "a message");
  EXPECT_NE(refusal(with(kName, 8, 65)).find("name is 65"), std::string::npos);
  EXPECT_EQ(refusal(with(kProvider, 3, 16)), "a message");
  EXPECT_NE(refusal(with(kProvider, 3, 17)).find("provider is 17"), std::string::npos);
  EXPECT_EQ(refusal(with(kAddress, 3, 256)), "a message");
  EXPECT_NE(refusal(with(kAddress, 3, 257)).find("address is 257"), std::string::npos);
  auto larger = written(a_subscribe());
  put(larger, kPageBytes, (1U << 20) + 1);
  EXPECT_NE(refusal(larger).find("size of a page"), std::string::npos);
  larger = written(a_subscribe());
  put(larger, kPages, 65'536U);
  EXPECT_NE(refusal(larger).find("number of pages"), std::string::npos);

  auto hello = written(a_hello());
  hello.resize(hello.size() + 60, std::byte{'x'});
  put(hello, 58, std::uint16_t{65});
  EXPECT_NE(refusal(resized(std::move(hello), 0)).find("program is 65"), std::string::npos);
  for (const auto& [code, what] : {std::pair{65, 511}, std::pair{60, 513}}) {
    std::vector<std::byte> refuse(kControlHeaderBytes);
    put(refuse, 4, std::uint16_t{5});
    for (const int length : {code, what}) {
      refuse.push_back(static_cast<std::byte>(length));
      refuse.push_back(static_cast<std::byte>(length >> 8));
      refuse.resize(refuse.size() + static_cast<std::size_t>(length), std::byte{'x'});
    }
    EXPECT_NE(refusal(resized(std::move(refuse), 0)).find(code == 65 ? "code is 65" : "what is 513"), std::string::npos);
  }
}

TEST(NetworkControl, NoLinkIsThereTwice) {
  ControlSubscribe twice = a_subscribe();
  twice.links.push_back(twice.links.front());
  EXPECT_NE(refusal(written(twice)).find("twice"), std::string::npos);
}

TEST(NetworkControl, TextsArePrintable) {
  for (const int letter : {0, 7, 0x1b, 0x7f, 0x9b}) {
    auto bytes = written(a_subscribe());
    bytes[kName + 2 + 4] = static_cast<std::byte>(letter);
    EXPECT_NE(refusal(bytes).find("byte 40: name"), std::string::npos) << letter << ": " << refusal(bytes);
  }
}

TEST(NetworkControl, OwnTextsAreCutToTheirBounds) {
  const auto bytes = written(ControlRefuse{std::string(100, 'c'), "bell \a" + std::string(600, 'w')});
  const auto taken = parse_control(bytes);
  ASSERT_TRUE(taken && *taken);
  EXPECT_EQ((*taken)->message, ControlMessage(ControlRefuse{std::string(64, 'c'), "bell ?" + std::string(506, 'w')}));
}

}  // namespace
