// Network pages: any bytes are refused or read; chunks lie within the page, and are the same after writing and reading
// again.
#include <cstring>
#include <vector>

#include "formats/network_page.h"
#include "fuzz/check.h"

namespace {

using namespace rodeo::formats;

struct Seen {
  unsigned link;
  std::uint32_t count;
  std::vector<std::byte> bytes;
  std::uint8_t status;
  bool more_follows;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> chunks_of(const NetworkPageReader& reader) {
  std::vector<Seen> chunks;
  for (std::size_t i = 0; i < reader.runs().size(); ++i) {
    const rodeo::ChunkRun& run = reader.runs()[i];
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const auto chunk = run.chunk(k);
      chunks.push_back(
          {run.link, reader.counts()[i] + k, {chunk.begin(), chunk.end()}, run.chunk_status(k), run.more_follows});
    }
  }
  return chunks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t links = 1 + data[0];
  std::vector<std::byte> page(size - 1);
  if (size > 1) std::memcpy(page.data(), data + 1, size - 1);
  NetworkPageReader reader(links, 64 * 1024);
  const auto header = reader.read(page);
  if (!header) {
    FUZZ_CHECK(reader.runs().empty() && reader.counts().empty());
    return 0;
  }
  std::vector<std::byte> memory(4 * size + 4096);
  NetworkPageWriter writer(memory);
  for (std::size_t i = 0; i < reader.runs().size(); ++i) {
    const rodeo::ChunkRun& run = reader.runs()[i];
    for (std::uint32_t k = 0; k < run.count; ++k) {
      const auto chunk = run.chunk(k);
      FUZZ_CHECK(chunk.data() >= page.data() && chunk.data() + chunk.size() <= page.data() + page.size());
    }
    RunPlace from;
    FUZZ_CHECK(writer.append(run.link, reader.counts()[i], run, from));
  }
  NetworkPageReader again(links, memory.size());
  const auto written = writer.finish(header->number, header->clock_ns);
  FUZZ_CHECK(again.read(written) == header);
  FUZZ_CHECK(chunks_of(again) == chunks_of(reader));
  return 0;
}
