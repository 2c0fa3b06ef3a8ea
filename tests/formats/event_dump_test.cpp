// rodeo data dump: every header word of any event is named, in order.
#include "formats/event_dump.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/random_event.h"
#include "storage/sample_file.h"

namespace {

using namespace rodeo::formats;
using rodeo::test::sample_event;

// How often the dump names each word of the event or shows it as content.
void cover(const DumpNode& node, std::map<std::uint64_t, int>& words) {
  for (const DumpField& field : node.fields) ++words[field.offset / 4];
  for (std::uint64_t at = 0; at < node.bytes.size(); at += 4) ++words[(node.bytes_offset + at) / 4];
  for (const DumpNode& child : node.children) cover(child, words);
}

TEST(EventDump, NamesEveryWordOfAnEventOnce) {
  rodeo::test::RandomEvents random(1);
  for (int i = 0; i < 50; ++i) {
    FullEventHeader header = random.event_header();
    header.compression = Compression::none;
    const std::vector<std::byte> event = encode_full_event(header, random.robs());
    const EventDump dump = dump_event(event, "event");
    std::map<std::uint64_t, int> words;
    cover(dump.root, words);
    // The words of the stream tags are shown as text.
    ASSERT_EQ(words.size() + header.stream_tags.size(), event.size() / 4);
    EXPECT_TRUE(std::ranges::all_of(words, [](const auto& word) { return word.second == 1; }));
  }
}

TEST(EventDump, SaysStatusInWordsAndMissingLinksByName) {
  const std::vector<std::byte> event = sample_event({.links = 3, .missing_in_event = 1}, 1);
  const EventDump dump = dump_event(event, "event 1");
  const std::string text = render_dump(dump.root, {});
  for (const char* expected :
       {"event 1\n", "extended L1 id              ECR 1, L1 id 1", "time-out", "1 link missing",
        "missing: link id 0x00540002", "ROB 0x00610001 MDT", "chunk 1: link id 0x00540001, 15 bytes, ok",
        "checksum                    holds", "<Tag name=\"Main\" type=\"physics\" lumi=\"1\"/>"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(EventDump, ShowsNoResetCounterWhereThereIsNone) {
  const std::vector<std::byte> event = sample_event({.links = 3}, 1);  // L1 id 0x01000001
  const auto shown = [&](const IdLayout& ids) { return render_dump(dump_event(event, "event", ids).root, {}); };
  EXPECT_NE(shown({}).find("ECR 1, L1 id 1"), std::string::npos);
  for (const auto& ids : {IdLayout{.bits = 24, .has_resets = false}, IdLayout{.bits = 32, .has_resets = false}})
    EXPECT_EQ(shown(ids).find("ECR"), std::string::npos);
  EXPECT_NE(shown({.bits = 32, .has_resets = false}).find("extended L1 id              L1 id 16777217"), std::string::npos);
}

TEST(EventDump, LimitsLinesUnlessAskedForAll) {
  const std::vector<std::byte> event = sample_event({.links = 20, .chunk_bytes = 200}, 1);
  const EventDump dump = dump_event(event, "event");
  const std::string some = render_dump(dump.root, {.chunks = 4, .hex_lines = 2});
  EXPECT_NE(some.find("… 16 more chunks (--all shows them)"), std::string::npos);
  EXPECT_NE(some.find("… 168 more bytes (--all shows them)"), std::string::npos);
  const std::string all = render_dump(dump.root, {.chunks = 0, .hex_lines = 0});
  EXPECT_EQ(all.find("more"), std::string::npos);
  EXPECT_NE(all.find("chunk 19"), std::string::npos);
}

TEST(EventDump, ShowsACompressedPayloadDecompressed) {
  const std::vector<std::byte> event = sample_event({.links = 2, .compress = true}, 1);
  const EventDump dump = dump_event(event, "event");
  const std::string text = render_dump(dump.root, {});
  EXPECT_NE(text.find("offsets below count in the uncompressed payload"), std::string::npos);
  EXPECT_NE(text.find("chunk 1: link id 0x00540001"), std::string::npos);
}

TEST(EventDump, ShowsWhatDoesNotDecodeAsBytesWithTheReason) {
  std::vector<std::byte> event = sample_event({.links = 2}, 1);
  const std::string whole = render_dump(dump_event(event, "event").root, {});
  const std::vector<std::byte> cut(event.begin(), event.begin() + 100);
  EXPECT_NE(render_dump(dump_event(cut, "event").root, {}).find("event size in words"), std::string::npos);
  EXPECT_NE(render_dump(dump_event({}, "event").root, {}).find("event header needs 28 bytes, 0 are there"),
            std::string::npos);
  for (std::size_t i = 0; i < event.size(); ++i) {
    event[i] ^= std::byte{0xff};
    EXPECT_NE(render_dump(dump_event(event, "event").root, {}), whole) << "byte " << i;
    event[i] ^= std::byte{0xff};
  }
}

}  // namespace
