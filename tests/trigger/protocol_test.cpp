#include "trigger/protocol.h"

#include <gtest/gtest.h>

namespace {

using namespace rodeo::trigger;
using namespace rodeo::trigger::protocol;

std::vector<std::byte> bytes_of(const Message& message) {
  std::vector<std::byte> bytes;
  encode(message, bytes);
  return bytes;
}

std::expected<Message, Wrong> read_back(std::span<const std::byte> bytes) {
  const auto header = decode_header(bytes.first<kHeaderBytes>());
  if (!header) return std::unexpected(header.error());
  return decode(header->type, bytes.subspan(kHeaderBytes));
}

const std::vector<Message> kMessages{
    Hello{.functions = 2, .seed = 7, .system = "detector", .name = "host-2"},
    Welcome{.timeout_ms = 5000, .sequence = 1ULL << 40, .name = "ctp", .marks = {{0, 1, 0}, {7, 2, 0}, {1ULL << 40, 3, 5}}},
    Welcome{.name = "ctp"},
    Refused{.reason = Reason::seed, .why = "another seed"},
    State{.ready = 2, .busy = true, .hold = 3, .granted = 1ULL << 33},
    Triggers{.time_ns = 12345,
             .sequence = 100,
             .ecrs = 2,
             .held = 3,
             .begins = true,
             .ranges = {{100, 0x02000010, 5, 77, 0, 3, 4},
                        {105, 0xff000000, 0x1000000, 78, 8, 5, 6},
                        {105 + 0x1000000, 0, 1, 79, 9, 5, 6}},
             .firsts = {{3563, 255}, {0, 0}, {1, 1}}},
    Triggers{},
};

TEST(TriggerProtocol, EveryMessageIsReadAsItWasWritten) {
  for (const Message& message : kMessages) {
    const auto bytes = bytes_of(message);
    const auto again = read_back(bytes);
    ASSERT_TRUE(again.has_value()) << message.index() << ": " << again.error();
    EXPECT_EQ(*again, message) << message.index();
  }
}

TEST(TriggerProtocol, AGreetingCarriesAnyBytesAndAtLeastOne) {
  const Greeting greeting{{std::byte{0}, std::byte{0xff}, std::byte{7}}};
  EXPECT_EQ(read_back(bytes_of(greeting)).value(), Message(greeting));
  EXPECT_FALSE(read_back(bytes_of(Greeting{})).has_value());
}

TEST(TriggerProtocol, AMessageOfAnyOtherLengthIsRefused) {
  for (const Message& message : kMessages) {
    auto bytes = bytes_of(message);
    for (std::size_t size = kHeaderBytes; size < bytes.size(); ++size)
      EXPECT_FALSE(read_back(std::span(bytes).first(size)).has_value()) << message.index() << " cut to " << size;
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(read_back(bytes).has_value()) << message.index();
  }
}

TEST(TriggerProtocol, NumbersOutsideTheirBoundsAreRefused) {
  const auto refused = [](const Message& message) { return !read_back(bytes_of(message)).has_value(); };
  EXPECT_TRUE(refused(Hello{.functions = 0, .name = "x"}));
  EXPECT_TRUE(refused(Hello{.functions = 5000, .name = "x"}));
  EXPECT_TRUE(refused(Hello{.name = ""}));
  EXPECT_TRUE(refused(State{.ready = 5000}));
  EXPECT_TRUE(refused(Triggers{.ranges = {{0, 0, 0, 0}}, .firsts = {{}}})) << "no trigger in a range";
  EXPECT_TRUE(refused(Triggers{.ranges = {{0, 0xffffff, 2, 0}}, .firsts = {{}}})) << "ids wrap within a range";
  EXPECT_TRUE(refused(Triggers{.ranges = {{0, 0, 1, 0}}, .firsts = {{3564, 0}}})) << "invalid bunch crossing";
  EXPECT_TRUE(refused(Triggers{.ranges = {{0, 5, 2, 0}, {2, 6, 1, 0}}, .firsts = {{}, {}}})) << "a repeated id";
  EXPECT_TRUE(refused(Triggers{.ranges = {{0, 5, 2, 0, 1}, {2, 7, 1, 0, 0}}, .firsts = {{}, {}}})) << "an earlier epoch";
  EXPECT_TRUE(refused(Welcome{.marks = {{7, 1, 0}, {7, 2, 0}}}));
  EXPECT_TRUE(refused(Triggers{.sequence = ~0ULL, .ranges = {{~0ULL, 0, 1, 0}}, .firsts = {{}}}));
}

TEST(TriggerProtocol, TextsAreOfPrintableCharactersAndBounded) {
  const auto hello = read_back(bytes_of(Hello{.system = "a\nb", .name = std::string(300, 'n')}));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(std::get<Hello>(*hello).system, "a?b");
  EXPECT_EQ(std::get<Hello>(*hello).name.size(), kMostText);
  auto bytes = bytes_of(Hello{.name = "x"});
  bytes.back() = std::byte{0x1b};
  EXPECT_FALSE(read_back(bytes).has_value());
}

TEST(TriggerProtocol, OfAnotherVersionOnlyTheVersionIsLookedAt) {
  auto bytes = bytes_of(Hello{.version = 9, .name = "x"});
  bytes.resize(bytes.size() + 100);
  const auto hello = read_back(bytes);
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(std::get<Hello>(*hello).version, 9);
}

TEST(TriggerProtocol, AHeaderThatIsNoneIsRefused) {
  const auto bytes = bytes_of(State{});
  const auto with = [&](std::size_t at, unsigned value) {
    std::array<std::byte, kHeaderBytes> header;
    std::copy_n(bytes.begin(), kHeaderBytes, header.begin());
    header[at] = static_cast<std::byte>(value);
    return decode_header(header).has_value();
  };
  EXPECT_TRUE(with(4, 4));
  EXPECT_FALSE(with(0, 0));
  EXPECT_FALSE(with(4, 0));
  EXPECT_FALSE(with(4, 7));
  EXPECT_FALSE(with(6, 1));
  EXPECT_FALSE(with(10, 2)) << "128 KiB";
}

}  // namespace
