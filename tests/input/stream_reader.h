// Reads all available data of a stream and keeps the essential fields of each chunk.
#pragma once

#include <cstring>
#include <vector>

#include "formats/provable.h"
#include "rodeo/input.h"

namespace rodeo::input::testing {

struct SeenChunk {
  LinkIndex link = 0;
  std::uint32_t l1id = 0;  ///< the id in the chunk
  std::uint16_t bcid = 0;
  std::uint8_t status = 0;
  std::vector<std::byte> bytes;
};

/// Polls until the stream is empty or at its end, or until there are `enough` chunks; releases every page.
inline PollStatus read_all(DataStream& stream, std::vector<SeenChunk>& chunks, std::size_t enough = ~std::size_t{0}) {
  Page* page = nullptr;
  PollStatus status{};
  while (chunks.size() < enough && (status = stream.poll(page)) == PollStatus::page) {
    for (const ChunkRun& run : page->runs) {
      for (std::uint32_t i = 0; i < run.count; ++i) {
        const auto bytes = run.chunk(i);
        SeenChunk chunk{.link = run.link, .status = run.chunk_status(i), .bytes = {bytes.begin(), bytes.end()}};
        if (bytes.size() >= 6) {
          std::memcpy(&chunk.l1id, bytes.data(), 4);
          std::memcpy(&chunk.bcid, bytes.data() + 4, 2);
        }
        chunks.push_back(std::move(chunk));
      }
    }
    page->drop();
  }
  return status;
}

}  // namespace rodeo::input::testing
