// One event file: walk, verify and recover survive any bytes and agree. Recover saves every event of a file that verifies,
// and the saved file has the same events. Input: the file.
#include <vector>

#include "formats/event_check.h"
#include "formats/full_event.h"
#include "fuzz/check.h"
#include "storage/event_file_reader.h"
#include "storage/event_places.h"
#include "storage/file_recover.h"
#include "storage/file_verify.h"

namespace {

using namespace rodeo::formats;
using namespace rodeo::storage;

// Blocks up to the end record, or up to the first damage.
std::uint64_t walk(std::span<const std::byte> file, bool& closed) {
  auto reader = EventFileReader::open(file);
  if (!reader) return 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = reader->header().size_bytes;
  while (true) {
    const auto block = reader->next();
    if (!block || !*block) break;
    FUZZ_CHECK((*block)->offset == bytes);
    bytes += kSeparatorBytes + (*block)->bytes();
    ++blocks;
  }
  closed = reader->end().has_value();
  FUZZ_CHECK(reader->position() <= file.size());
  FUZZ_CHECK(!reader->next().value_or(std::nullopt).has_value());
  return blocks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  bool closed = false;
  const std::uint64_t blocks = walk(file, closed);

  auto places = EventPlaces::open(file);
  if (places) {
    FUZZ_CHECK(places->count() == blocks && places->end().has_value() == closed);
    places->go_on(file);
    FUZZ_CHECK(places->count() == blocks);
    std::vector<std::byte> buffer;
    for (std::size_t i = 0; i < blocks; ++i) (void)places->event(i, buffer);
  }

  const EventFileReport report = verify_event_file(file);
  FUZZ_CHECK(report.blocks == blocks && report.end.has_value() == closed);
  FUZZ_CHECK(!report.sound() || closed);
  (void)file_kind(file);
  (void)report.unprotected();

  std::uint64_t saved = 0;
  const auto scan = scan_events(file, [&](const FoundEvent& event) -> rodeo::Result<void> {
    FUZZ_CHECK(event.offset + event.stored.size() <= file.size());
    ++saved;
    return {};
  });
  FUZZ_CHECK(scan.has_value() && scan->events == saved);
  FUZZ_CHECK(scan->skipped_bytes <= file.size());
  FUZZ_CHECK(!report.sound() || saved == blocks);
  if (report.header) {
    const DecodedFileHeader& header = *report.header;
    const std::vector<std::byte> again = encode_file_header(header);
    const auto decoded = decode_file_header(again);
    FUZZ_CHECK(decoded.has_value() && decoded->free_strings == header.free_strings && decoded->run == header.run);
  }
  return 0;
}
