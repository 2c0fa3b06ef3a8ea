#include "formats/assignment.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <type_traits>

namespace {

using namespace rodeo::formats;

template <typename M>
std::vector<std::byte> written(const M& message) {
  std::vector<std::byte> bytes;
  encode(message, bytes);
  return bytes;
}

template <typename M>
std::string refusal(std::span<const std::byte> bytes) {
  M message;
  const auto read = decode(bytes, message);
  return read ? "" : read.error().message();
}

template <typename M>
M read(const std::vector<std::byte>& bytes) {
  M message;
  const auto good = decode(bytes, message);
  EXPECT_TRUE(good) << good.error().message();
  return message;
}

const NodeHello kHello{
    .instance = 0x0102030405060708,
    .slots = 32,
    .session = 76,
    .first = 5,
    .name = "node-1",
    .decisions = {{.id = 5, .bytes = 100, .verdict = Verdict::debug, .flags = EventDecision::kPartial}},
    .events = {{.id = 0x1'02000003, .lumi_block = 4, .scan_step = 5, .bcid = 6, .trigger_type = 7, .flags = 1}}};
const NodeWelcome kWelcome{.run_number = 12,
                           .run_type = 0xf,
                           .session = 77,
                           .event_timeout_ns = 10'000'000'000,
                           .patience_ns = 500'000'000,
                           .system = "demo",
                           .readouts = {"readout1.hlt", "readout2.hlt"},
                           .recorders = {"recorder"},
                           .let_go = {5, 6}};
const NodeWork kWork{
    .session = 77, .granted = 40, .first = 2, .decisions = {{.id = 9}, {.id = 10, .verdict = Verdict::given_back}}};
const NodeOrders kOrders{
    .safe = 3, .first = 8, .flags = NodeOrders::kOver, .give_back = 4, .newer_than = 5, .events = {{.id = 1}, {.id = 2}}};

TEST(Assignment, IsReadAsItWasWritten) {
  EXPECT_EQ(read<NodeHello>(written(kHello)), kHello);
  EXPECT_EQ(read<NodeWelcome>(written(kWelcome)), kWelcome);
  EXPECT_EQ(read<NodeWork>(written(kWork)), kWork);
  EXPECT_EQ(read<NodeOrders>(written(kOrders)), kOrders);
}

TEST(Assignment, LiesOnTheWireAsThePageSays) {
  const auto bytes = written(kOrders);
  const unsigned char expected[] = {
      3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0,    0,    0, 0, 1, 0, 0, 0,  // safe, first, flags
      4, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 2,    0,    0, 0,              // give back, newer than, number of events
      1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0,              // id, block, step, BCID, type, flags
      2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0};
  ASSERT_EQ(bytes.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
}

template <typename M>
void expect_no_part_to_be_read(const M& message) {
  const auto bytes = written(message);
  // One byte of a version is invalid.
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(refusal<M>(std::vector(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  auto more = bytes;
  more.push_back(std::byte{0});
  EXPECT_NE(refusal<M>(more).find("end of the message"), std::string::npos);
}

TEST(Assignment, NoPartOfAMessageIsRead) {
  expect_no_part_to_be_read(kHello);
  expect_no_part_to_be_read(kWelcome);
  expect_no_part_to_be_read(kWork);
  expect_no_part_to_be_read(kOrders);
}

TEST(Assignment, OfAnotherVersionNothingElseIsRead) {
  auto bytes = written(kHello);
  bytes[0] = std::byte{9};
  bytes.resize(40);
  EXPECT_EQ(read<NodeHello>(bytes), NodeHello{.version = 9});
}

TEST(Assignment, WhatHasNoMeaningIsRefused) {
  const auto with = [](const auto& message, std::size_t from_end, std::uint8_t value) {
    auto bytes = written(message);
    bytes[bytes.size() - from_end] = std::byte{value};
    return refusal<std::remove_cvref_t<decltype(message)>>(bytes);
  };
  EXPECT_NE(with(kOrders, 1, 4).find("flags of an event"), std::string::npos);
  EXPECT_NE(with(kOrders, 3, 0x0e).find("BCID"), std::string::npos);
  EXPECT_NE(with(kWork, 4, 5).find("verdict"), std::string::npos);
  EXPECT_NE(with(kWork, 3, 4).find("flags of a decision"), std::string::npos);
  EXPECT_NE(with(kWork, 1, 1).find("reserved"), std::string::npos);
  EXPECT_NE(with(kOrders, 52, 2).find("flags"), std::string::npos);
}

TEST(Assignment, NoMemoryIsTakenForWhatIsNotThere) {
  auto bytes = written(NodeWork{});
  const std::uint32_t many = 0x7fffffff;
  std::memcpy(bytes.data() + bytes.size() - 4, &many, sizeof many);
  EXPECT_NE(refusal<NodeWork>(bytes).find("decisions"), std::string::npos);
  auto welcome = written(NodeWelcome{});
  const std::uint32_t texts = 4000;
  std::memcpy(welcome.data() + welcome.size() - 12, &texts, sizeof texts);
  EXPECT_NE(refusal<NodeWelcome>(welcome), "");
}

TEST(Assignment, AnyNumberOfRecordsComesBack) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    NodeWork work{.session = random(), .granted = random(), .first = random()};
    for (std::size_t i = random() % 20; i > 0; --i)
      work.decisions.push_back({.id = random(),
                                .bytes = static_cast<std::uint32_t>(random()),
                                .verdict = static_cast<Verdict>(random() % kVerdicts),
                                .flags = static_cast<std::uint8_t>(random() % 4)});
    EXPECT_EQ(read<NodeWork>(written(work)), work);
  }
}

}  // namespace
