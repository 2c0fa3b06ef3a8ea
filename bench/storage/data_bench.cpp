#include "bench/storage/data_bench.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "formats/checksum.h"
#include "formats/event_frame.h"
#include "formats/event_walk.h"
#include "formats/provable.h"
#include "storage/event_file_encoder.h"
#include "storage/event_file_reader.h"
#include "storage/file_seal.h"

namespace rodeo::bench {

using namespace formats;

namespace {

constexpr std::uint32_t kRun = 1;
constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kFirstLink = 0x00540000;
constexpr std::time_t kTime = 1'795'231'845;

struct Adder {
  DataSums sums;
  DataWork work = DataWork::columns;

  void event(const FullEventView& /*event*/) { ++sums.events; }
  void fragment(const RobView& /*rob*/, const RodView* /*rod*/, const AbsentLinks& /*absent*/) {}
  void chunk(const ChunkRecord& record) {
    ++sums.chunks;
    sums.links += record.header.link_id;
    sums.statuses += record.header.felix_status | record.header.rodeo_status << 8;
    sums.sizes += record.bytes.size();
    if (work == DataWork::crc) sums.crc = crc32(record.bytes, sums.crc);
    if (work == DataWork::columns) return;
    std::uint64_t bytes = 0;
    for (const std::byte byte : record.bytes) bytes += static_cast<std::uint64_t>(byte);
    sums.bytes += bytes;
  }
};

}  // namespace

Result<void> make_data_file(const std::string& path, const DataFileSettings& settings) {
  const Provable provable(kSeed);
  const EventFrame frame({.run_number = kRun, .run_type = run_type::kTest, .event_checksum = ChecksumType::adler32});
  storage::EventFileEncoder encoder({.run = {.run_number = kRun}, .provable = ProvableMark{.seed = kSeed}});
  const auto header = encoder.begin_file(kTime, "00000000-0000-4000-8000-000000000001");
  std::vector<std::byte> file(header.begin(), header.end());
  std::vector<std::byte> data;
  std::vector<std::byte> chunk(settings.chunk_bytes);
  EventEnds ends;
  for (std::uint32_t number = 0; number < settings.events; ++number) {
    Fragment fragment;
    fragment.l1id = {number};
    fragment.global_id = number;
    fragment.source_id = {0x00610001};
    fragment.bcid = provable.trigger(fragment.l1id).bcid;
    fragment.trigger_type = provable.trigger(fragment.l1id).trigger_type;
    data.clear();
    for (std::uint32_t link = 0; link < settings.links; ++link) {
      provable.write(chunk, kFirstLink + link, fragment.l1id);
      append_chunk_record(data, {.link_id = kFirstLink + link}, chunk);
    }
    FragmentPart part{data.data(), data.size()};
    fragment.parts = &part;
    fragment.part_count = 1;
    frame.store(fragment, {.bc_time_s = static_cast<std::uint32_t>(kTime), .bc_time_ns = number}, ends);
    const auto bytes = static_cast<std::uint32_t>(ends.head.size() + data.size() + ends.tail.size());
    append_bytes(file, encoder.separator(bytes));
    append_bytes(file, ends.head);
    append_bytes(file, data);
    append_bytes(file, ends.tail);
  }
  append_bytes(file, encoder.end_file(kTime + 10, true));
  FileDigest digest;
  digest.update(file);
  const auto digits = crc_digits(digest.crc32());
  std::memcpy(file.data() + encoder.crc_offset(), digits.data(), digits.size());
  return storage::write_file(path, file);
}

Result<DataPass> read_in_a_loop(const std::string& path, bool checksums, DataWork work) {
  const auto wrong = [&](const DecodeError& error) { return std::unexpected(Error{"data.damaged", error.message(), path}); };
  DataPass pass;
  Adder adder{.sums = {}, .work = work};
  const double before = base::process_cpu_seconds();
  {
    const auto mapped = RODEO_TRY(base::MappedFile::open(path, base::MappedFile::Access::random));
    auto reader = storage::EventFileReader::open(mapped.bytes());
    if (!reader) return wrong(reader.error());
    std::vector<std::byte> block;
    std::vector<std::byte> plain;
    for (;;) {
      const auto next = reader->next();
      if (!next) return wrong(next.error());
      if (!*next) break;
      const auto whole =
          walk_event(reader->event(**next, block), {.chunk_records = true, .checksums = checksums}, plain, adder);
      if (!whole) return wrong(whole.error());
    }
    RODEO_TRY(mapped.check());
  }
  pass.cpu_seconds = base::process_cpu_seconds() - before;
  pass.sums = adder.sums;
  return pass;
}

}  // namespace rodeo::bench
