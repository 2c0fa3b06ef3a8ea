#include "storage/file_sums.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/parallel.h"
#include "formats/checksum.h"
#include "formats/file_marks.h"

namespace rodeo::storage {

using namespace formats;

namespace {

// Fits into a core's cache, for the second sum.
constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

FileSums file_sums(std::span<const std::byte> file, std::optional<std::size_t> crc_digits, unsigned threads,
                   const Progress& progress) {
  // The piece with the CRC digits is summed with zeros in their place.
  const std::size_t head = crc_digits ? *crc_digits + kCrcDigits : 0;
  FileSums sums{.adler32 = adler32(file.first(head)), .crc32 = kCrc32Start};
  if (crc_digits) {
    std::array<std::byte, kCrcDigits> zeros;
    zeros.fill(std::byte{'0'});
    sums.crc32 = crc32(zeros, crc32(file.first(*crc_digits)));
  }
  const std::span<const std::byte> rest = file.subspan(head);
  const std::size_t pieces = (rest.size() + kPieceBytes - 1) / kPieceBytes;
  const auto piece = [&](std::size_t i) {
    return rest.subspan(i * kPieceBytes, std::min(kPieceBytes, rest.size() - i * kPieceBytes));
  };
  std::vector<FileSums> of_pieces(pieces);
  base::for_each_in_parallel(pieces, threads, [&](std::size_t i) {
    of_pieces[i] = {.adler32 = adler32(piece(i)), .crc32 = crc_digits ? crc32(piece(i)) : kCrc32Start};
    add_progress(progress, piece(i).size());
  });
  add_progress(progress, head);
  for (std::size_t i = 0; i < pieces; ++i) {
    sums.adler32 = adler32_of_both(sums.adler32, of_pieces[i].adler32, piece(i).size());
    if (crc_digits) sums.crc32 = crc32_of_both(sums.crc32, of_pieces[i].crc32, piece(i).size());
  }
  return sums;
}

}  // namespace rodeo::storage
