// Requests of the service `events`: written requests are read back, and harmful ones are refused.
#include "formats/event_record.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace rodeo::formats;

std::vector<std::byte> written(const RecordHead& head) {
  std::vector<std::byte> bytes;
  append_record_head(bytes, head);
  return bytes;
}

TEST(EventRecord, AHeadComesBackAndTheEventBeginsBehindIt) {
  RecordHead head{.global_id = 0x1'0000'0007, .streams = {{.type = "physics", .name = "Main"}}};
  head.streams.push_back({.type = "debug", .name = "Node-Partial_1", .obeys_lumi_block = false});
  std::vector<std::byte> bytes = written(head);
  const std::size_t before = bytes.size();
  bytes.resize(before + 100, std::byte{0xaa});
  const auto taken = decode_record_head(bytes);
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(taken->head, head);
  EXPECT_EQ(taken->bytes, before);
  EXPECT_EQ(taken->bytes % 4, 0U);
}

TEST(EventRecord, AHeadSaysWhetherItsEventWasAnotherNodes) {
  const RecordHead head{.global_id = 1, .streams = {{}}, .assigned_again = true};
  auto bytes = written(head);
  EXPECT_EQ(decode_record_head(bytes)->head, head);
  bytes[4] = std::byte{2};
  EXPECT_EQ(decode_record_head(bytes).error().fault, DecodeFault::unknown);
}

TEST(EventRecord, TheLargestHeadIsWithinItsBound) {
  RecordHead head;
  for (std::size_t i = 0; i < kMostRecordStreams; ++i)
    head.streams.push_back(
        {std::string(kMostStreamType, 't'), std::string(kMostStreamName - 2, 'n') + std::to_string(10 + i)});
  const auto bytes = written(head);
  EXPECT_LE(bytes.size(), kMostRecordHeadBytes);
  EXPECT_TRUE(decode_record_head(bytes));
}

TEST(EventRecord, ANameThatCouldLeaveTheDirectoryIsRefused) {
  for (const std::string name : {"../x", "a/b", "", "a.b", "a b", "\n"}) EXPECT_FALSE(good_stream_text(name, 32)) << name;
  EXPECT_TRUE(good_stream_text("Main_1-a", 32));
  auto bytes = written({.global_id = 1, .streams = {{.type = "physics", .name = "abcd"}}});
  bytes[16 + 4 + 7] = static_cast<std::byte>('/');
  const auto taken = decode_record_head(bytes);
  ASSERT_FALSE(taken);
  EXPECT_STREQ(taken.error().field, "stream name");
}

TEST(EventRecord, EachPrefixOfAHeadIsTooShort) {
  const auto bytes = written({.global_id = 1, .streams = {{}, {.type = "debug", .name = "abc"}}});
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_record_head(std::span(bytes).first(n))) << n;
}

TEST(EventRecord, AStreamIsNamedOnce) {
  const auto taken = decode_record_head(written({.global_id = 1, .streams = {{}, {}}}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().fault, DecodeFault::wrong_value);
}

TEST(EventRecord, IdsAndTheirAnswerComeBack) {
  const std::vector<std::uint64_t> ids{1, 0x1'0000'0000, 3, 4, 5, 6, 7, 8, 9};
  std::vector<std::byte> bytes;
  append_have(bytes, ids);
  EXPECT_EQ(*decode_have(bytes), ids);
  bytes.pop_back();
  EXPECT_FALSE(decode_have(bytes));
  const HaveAnswer have{.streams = {{"physics", "Main"}, {"debug", "NodePartial"}}, .of = {1, 0, 2, 1}};
  bytes.clear();
  append_have_answer(bytes, have);
  EXPECT_EQ(*decode_have_answer(bytes, 4), have);
  EXPECT_FALSE(have.has(1));
  EXPECT_EQ(decode_have_answer(bytes, 4)->stream(2).type, "debug");
  EXPECT_FALSE(decode_have_answer(bytes, 5)) << "the answer to another question";
  bytes.back() = std::byte{3};
  EXPECT_FALSE(decode_have_answer(bytes, 4)) << "a stream that does not exist";
}

TEST(EventRecord, EachStatusHasAName) {
  for (std::uint16_t status = 16; status <= 22; ++status) EXPECT_STRNE(record_status_name(status), "unknown") << status;
  EXPECT_STREQ(record_status_name(999), "unknown");
}

}  // namespace
