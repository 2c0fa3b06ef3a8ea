#include "storage/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "formats/event_file_records.h"
#include "formats/file_marks.h"
#include "formats/full_event.h"
#include "formats/rdh.h"
#include "formats/superpage_dump.h"
#include "formats/words.h"

namespace rodeo::storage {

using namespace formats;

namespace {

constexpr std::size_t kProbeBytes = 4096;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// FELIX blocks: the second half-word names family and trailer width.
bool starts_like_a_block(std::uint32_t word) {
  const std::uint32_t family = word >> 16;
  return family == 0xabcd || family == 0xabce || (family & 0xc0ff) == 0xc0ce;
}

// True if at least two of the first words of a start record match: one alone may match by chance.
bool starts_like_an_event_file(std::span<const std::byte> file) {
  std::array<std::byte, kWordBytes> marker;
  store_word(marker.data(), kFileStartMarker);
  const std::size_t there = std::min(file.size(), marker.size());
  return there >= 2 && std::equal(marker.begin(), marker.begin() + static_cast<std::ptrdiff_t>(there), file.begin());
}

// True if the file ends within the first header, or within the second one.
bool is_cut_in_its_first_headers(std::span<const std::byte> file) {
  if (file.size() >= kRdhBytes) {
    const Rdh page = Rdh::read(file.data());
    return page.plausible() && page.offset_next() <= file.size() && file.size() - page.offset_next() < kRdhBytes;
  }
  return file.size() >= 4 && file.size() < kRdhBytes && (file[0] == std::byte{6} || file[0] == std::byte{7}) &&
         file[1] == std::byte{kRdhBytes};
}

// True if there is a separator, or an event that is whole by its own sizes, anywhere in the file.
bool holds_an_event(std::span<const std::byte> file) {
  std::array<std::byte, kWordBytes> marker;
  store_word(marker.data(), kFullEventMarker);
  for (std::size_t at = 0; at < file.size();) {
    const void* found = ::memmem(file.data() + at, file.size() - at, marker.data(), marker.size());
    if (found == nullptr) return false;
    at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - file.data());
    const auto event = decode_full_event(file.subspan(at));
    std::vector<std::byte> buffer;
    if (event && event->checksum_holds() && event->robs(buffer)) return true;
    at += kWordBytes;
  }
  return false;
}

bool holds_pages(std::span<const std::byte> file) {
  constexpr std::size_t kSearched = 64 << 20;
  const auto searched = file.first(std::min(file.size(), kSearched));
  std::size_t pages = 0;
  std::size_t behind = 0;
  for_each_page(searched, [&](std::size_t at) {
    pages = at == behind && pages > 0 ? pages + 1 : 1;
    behind = at + Rdh::read(searched.data() + at).offset_next();
    return pages < 3;
  });
  return pages >= 3;
}

// The major version of the first events, if all of them have one that is older or newer than those that Rodeo reads.
std::optional<std::uint32_t> other_event_version(std::span<const std::byte> file, std::size_t at) {
  std::optional<std::uint32_t> version;
  for (int i = 0; i < 3; ++i) {
    const auto separator = decode_separator(file.subspan(at));
    if (!separator || separator->block_bytes < 4 * kWordBytes) break;
    const WordView event(file.subspan(at + kSeparatorBytes, 4 * kWordBytes));
    const std::uint32_t found = event[3] >> 16;
    if (event[0] != kFullEventMarker || found == kEventVersion4 || found == kEventVersion5 || found == 0 || found > 0x0fff ||
        found != version.value_or(found))
      return std::nullopt;
    version = found;
    at += kSeparatorBytes + separator->block_bytes;
  }
  return version;
}

// An event file that Rodeo does not read, and the reason.
std::optional<OtherFile> other_event_file(std::span<const std::byte> file) {
  const auto probe = file.first(std::min(file.size(), kProbeBytes));
  if (file.size() < 12 || text_of(probe).find(kRodeoPrefix) != std::string_view::npos) return std::nullopt;
  const WordView words(file.first(12));
  if (words[0] == 0xaaaa3412U)
    return OtherFile{"an event file (ATLAS EventStorage) of big-endian words", "software of the machine that wrote it"};
  if (words[0] != kFileStartMarker || words[1] != 8) return std::nullopt;
  const auto header = decode_file_header(file);
  if (!header) {
    const std::uint32_t version = words[2];
    if (version == 2 || version == 5 || version == kFileVersion || version > 0xff) return std::nullopt;
    return OtherFile{fmt::format("an event file (ATLAS EventStorage) of version {}; Rodeo reads 2, 5 and 6", version),
                     "the ATLAS software of its time"};
  }
  if (const auto version = other_event_version(file, header->size_bytes)) {
    return OtherFile{
        fmt::format("an event file (ATLAS EventStorage, version {}) with events of format {}.{}; Rodeo reads 4.0 and 5.0",
                    header->version, *version >> 8, *version & 0xff),
        "the software of its experiment (BES III: pybes3, BOSS; ATLAS before 2010: the ATLAS software of its time)"};
  }
  return std::nullopt;
}

// RDH pages of another version: two headers in a row.
std::optional<OtherFile> other_pages(std::span<const std::byte> file) {
  if (file.size() < kRdhBytes) return std::nullopt;
  const Rdh first = Rdh::read(file.data());
  const std::size_t next = first.offset_next();
  if (first.header_size() != kRdhBytes || first.version() < 3 || first.version() > 15 || first.version() == 6 ||
      first.version() == 7 || next < kRdhBytes || next > file.size() - kRdhBytes)
    return std::nullopt;
  const Rdh second = Rdh::read(file.data() + next);
  if (second.version() != first.version() || second.header_size() != kRdhBytes) return std::nullopt;
  return OtherFile{fmt::format("RDH pages of version {}; Rodeo reads 6 and 7", first.version()),
                   "ALICE's O2 (o2-raw-file-check)"};
}

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char* what;
  const char* reader;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {0, "\x1f\x8b"sv, "gzip data", "uncompress it first: gunzip"},
    {0, "BZh"sv, "bzip2 data", "uncompress it first: bunzip2"},
    {0, "\xfd\x37zXZ\0"sv, "xz data", "uncompress it first: unxz"},
    {0, "\x28\xb5\x2f\xfd"sv, "zstd data", "uncompress it first: unzstd"},
    {0, "\x04\x22\x4d\x18"sv, "LZ4 data", "uncompress it first: unlz4"},
    {0, "PK\x03\x04"sv, "a zip archive", "unpack it first: unzip"},
    {257, "ustar"sv, "a tar archive", "unpack it first: tar -xf"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file",
     "any HDF5 viewer; if `rodeo data convert` made it, `rodeo data convert FILE --output NAME` makes event files of it "
     "again"},
    {0, "root"sv, "a ROOT file", "ROOT, uproot"},
    {0, "SQLite format 3\0"sv, "an SQLite database", "sqlite3; `rodeo runs` if it is a run database"},
    {0, "PAR1"sv, "a Parquet file", "pyarrow, pandas"},
    {0, "\x93NUMPY"sv, "a NumPy array", "numpy.load"},
    {0, "\x7f\x45LF"sv, "a program or library (ELF)", "no program of Rodeo, because it contains no data"},
    {0, "\xd4\xc3\xb2\xa1"sv, "captured network packets (pcap)", "wireshark, tcpdump"},
    {0, "\x0a\x0d\x0d\x0a"sv, "captured network packets (pcapng)", "wireshark, tcpdump"},
    {0, "\x00\x80\x4d\x49"sv, "a MIDAS file", "MIDAS (mdump), midas.file_reader in Python"},
    {0, "\x00\x80\x49\x4d"sv, "a MIDAS file", "MIDAS (mdump), midas.file_reader in Python"},
    {4, "\x01\x00\x03\x00"sv, "a HADES list-mode file (HLD)", "HYDRA, go4, DABC"},
    {0, "_DET"sv, "an EUDAQ file", "EUDAQ (euCliReader)"},
    {0, "_RAW"sv, "an EUDAQ file", "EUDAQ (euCliReader)"},
};

std::optional<OtherFile> by_magic(std::span<const std::byte> file) {
  const std::string_view text = text_of(file.first(std::min(file.size(), kProbeBytes)));
  for (const Magic& magic : kMagics) {
    if (text.size() >= magic.at + magic.bytes.size() && text.substr(magic.at, magic.bytes.size()) == magic.bytes)
      return OtherFile{magic.what, magic.reader};
  }
  return std::nullopt;
}

bool is_text(std::span<const std::byte> file) {
  return std::ranges::all_of(file.first(std::min(file.size(), kProbeBytes)), [](std::byte byte) {
    const auto c = std::to_integer<unsigned char>(byte);
    return c >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

FileKind file_kind(std::span<const std::byte> file) {
  if (file.empty()) return FileKind::empty;
  if (starts_like_superpages(file) || is_cut_in_its_first_headers(file)) return FileKind::superpage_dump;
  if (other_event_file(file) || other_pages(file)) return FileKind::other_version;
  if (starts_like_an_event_file(file)) return FileKind::event_file;
  if (file.size() >= kWordBytes && starts_like_a_block(load_word(file.data()))) return FileKind::block_recording;
  const auto probe = file.first(std::min(file.size(), kProbeBytes));
  if (std::ranges::all_of(probe, [](std::byte b) { return b == std::byte{0}; })) return FileKind::zeros;
  if (by_magic(file)) return FileKind::foreign;
  if (holds_an_event(file)) return FileKind::event_file;
  return holds_pages(file) ? FileKind::superpage_dump : FileKind::foreign;
}

OtherFile describe_other(std::span<const std::byte> file) {
  if (auto events = other_event_file(file)) return *std::move(events);
  if (auto pages = other_pages(file)) return *std::move(pages);
  if (auto known = by_magic(file)) return *std::move(known);
  if (file.size() < kWordBytes)
    return {fmt::format("{} byte{}: too short to be a data file", file.size(), file.size() == 1 ? "" : "s"), "nothing"};
  if (is_text(file)) return {"text", "an editor"};
  return {"in an unknown format", "the software that wrote it"};
}

Error no_data_error(FileKind kind, std::span<const std::byte> file, const std::string& path) {
  switch (kind) {
    case FileKind::empty:
      return {"data.empty", "the file is empty", path, "its writer was stopped before the first byte reached the disk"};
    case FileKind::zeros:
      return {"data.zeros", "the file starts with zeros only", path,
              "space was reserved but not written, or the disk lost it; `rodeo data recover` saves its whole events"};
    default: {
      const OtherFile other = describe_other(file);
      return {kind == FileKind::other_version ? "data.other_version" : "data.unknown_kind",
              "is not readable by Rodeo: " + other.what, path, "read by: " + other.reader};
    }
  }
}

Error no_event_file(FileKind kind, std::span<const std::byte> file, const std::string& path) {
  if (kind != FileKind::block_recording && kind != FileKind::superpage_dump) return no_data_error(kind, file, path);
  return {"data.recording", "is a recording or dump of a card, not an event file", path,
          "`rodeo data info` says what it is"};
}

}  // namespace rodeo::storage
