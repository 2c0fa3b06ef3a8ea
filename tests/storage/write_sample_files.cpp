// Writes event files for tests in other languages: `sound` (three files by rollover), `faulty` (fragments with every kind of
// fault that a builder flags) and `compressed`, with the same frame and file encoder that the readout uses.  usage:
// write_sample_files DIRECTORY
#include <algorithm>
#include <cstdio>

#include "formats/event_frame.h"
#include "formats/provable.h"
#include "formats/rod_data.h"
#include "formats/stream_tags.h"
#include "rodeo/chunk.h"
#include "storage/event_file_sequence.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;
using rodeo::Fragment;
using rodeo::L1Id;
namespace flag = rodeo::chunk_flag;

constexpr std::uint64_t kSeed = 42;
constexpr std::uint32_t kLinks = 5;
constexpr std::uint32_t kFirstLink = 0x00540000;
constexpr std::uint32_t kLinkIds[kLinks] = {kFirstLink, kFirstLink + 1, kFirstLink + 2, kFirstLink + 3, kFirstLink + 4};

struct Kind {
  const char* name;
  bool faulty;
  EventFrameSettings frame;
  bool compress;
  std::uint32_t max_blocks;
};

// The chunk data of one event. Writes the missing links into the fragment.
std::vector<std::byte> make_data(std::uint32_t number, bool faulty, Fragment& fragment) {
  const Provable provable(kSeed, true);
  std::vector<std::byte> data;
  for (std::uint32_t link = 0; link < kLinks; ++link) {
    const bool dummy = faulty && number == 5;
    if (dummy || (faulty && number % 4 == 2 && link == 3)) {
      fragment.status |= rodeo::fragment_status::kTimeout | (dummy ? rodeo::fragment_status::kDummy : 0);
      fragment.missing_links[0] |= 1U << link;
      ++fragment.missing;
      continue;
    }
    std::vector<std::byte> chunk(link == 4 && number == 3 ? 70000 : 30 + 3 * link + number);
    provable.write(chunk, kFirstLink + link, fragment.l1id);
    rodeo::ChunkHeader header{.link_id = kFirstLink + link};
    if (faulty && number == 6 && link == 1) {
      chunk[10] ^= std::byte{0x10};
      header.rodeo_status = flag::kCorrupt;
      fragment.status |= rodeo::fragment_status::kDataCorruption;
    }
    if (faulty && number == 7 && link == 2) {
      chunk.resize(17);
      header.rodeo_status = flag::kTruncated;
      header.felix_status = rodeo::chunk_status::kFirmwareTruncated;
    }
    append_chunk_record(data, header, chunk);
    ++fragment.chunks;
  }
  return data;
}

/// The error, or nothing.
std::string write(const std::string& directory, const Kind& kind) {
  EventFileSettings settings;
  settings.project = kind.name;
  settings.application = "sample";
  settings.lumi_block = 12;
  settings.run = {.run_number = 431493, .max_events = 8, .trigger_type = 3, .detector_mask = {0x10, 0x20, 0x30, 0x40}};
  settings.max_blocks = kind.max_blocks;
  settings.free_strings = {"Site=test bench"};
  settings.provable = ProvableMark{.seed = kSeed, .crc = true};
  EventFileSequence writer({.directory = directory, .files = settings});
  writer.start();
  const EventFrame frame(kind.frame);
  ZlibCompressor compressor(1);
  const Provable provable(kSeed, true);
  for (std::uint32_t number = 1; number <= 8; ++number) {
    Fragment fragment;
    fragment.l1id = L1Id::of(number / 5, number);  // the ECR counter rises at the fifth event
    fragment.global_id = number + (std::uint64_t{1} << 32);
    std::uint32_t absent[2] = {};
    fragment.link_ids = kLinkIds;
    fragment.missing_links = std::span(absent).first(1);
    fragment.removed_links = std::span(absent).last(1);
    fragment.source_id = {0x006b0007};
    fragment.bcid = provable.trigger(fragment.l1id).bcid;
    fragment.trigger_type = provable.trigger(fragment.l1id).trigger_type;
    std::vector<std::byte> data = make_data(number, kind.faulty, fragment);
    rodeo::FragmentPart part{data.data(), data.size()};
    fragment.parts = &part;
    fragment.part_count = 1;
    const EventStamp stamp{.bc_time_s = 1795231845, .bc_time_ns = number};
    EventEnds ends;
    std::vector<std::byte> event;
    if (kind.compress) {
      event.resize(frame.store_compressed(fragment, stamp, compressor, ends, event));
    } else {
      frame.store(fragment, stamp, ends);
      event = ends.head;
      append_bytes(event, data);
      append_bytes(event, ends.tail);
    }
    const std::span<const std::byte> whole = event;
    (void)writer.append({&whole, 1}, whole.size());
  }
  writer.close();
  return writer.status().failure;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: write_sample_files DIRECTORY\n", stderr), 2;
  EventFrameSettings frame{.run_number = 431493,
                           .run_type = run_type::kCalibration,
                           .lumi_block = 12,
                           .stream_tags = encode_stream_tags(std::vector<StreamTag>{{.name = "Main", .type = "physics"}}),
                           .rod_minor_version = 5,
                           .detector_event_type = 9};
  EventFrameSettings with_rob_checksum = frame;
  with_rob_checksum.rob_checksum = ChecksumType::adler32;
  with_rob_checksum.status_position = StatusPosition::after_data;
  for (const Kind& kind : {Kind{"sound", false, frame, false, 3}, Kind{"faulty", true, with_rob_checksum, false, 0},
                           Kind{"compressed", false, with_rob_checksum, true, 0}}) {
    if (const auto failure = write(argv[1], kind); !failure.empty()) return std::fputs(failure.c_str(), stderr), 1;
  }
  return 0;
}
