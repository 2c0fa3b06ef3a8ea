// Columns of many events, filled in one pass. read() gives them to NumPy without a further copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "event_parts.h"
#include "formats/event_walk.h"

namespace rodeo::python::data {

enum class Width : std::uint8_t { u16 = 2, u32 = 4, u64 = 8, i64 = 9 };
constexpr std::size_t bytes_of(Width width) { return width == Width::i64 ? 8 : static_cast<std::size_t>(width); }

enum class EventField : std::uint8_t {
  index,
  file,
  l1_id,
  global_id,
  bcid,
  run_number,
  lumi_block,
  run_type,
  trigger_type,
  time_ns,
  status,
  source_id,
  size,
  count,
};
enum class FragmentField : std::uint8_t {
  source_id,
  l1_id,
  bcid,
  trigger_type,
  run_number,
  detector_event_type,
  status,
  missing_links,
  removed_links,
  size,
  count,
};
enum class ChunkField : std::uint8_t { source_id, link, status, size, count };

struct FieldInfo {
  std::string_view name;
  Width width;
};
inline constexpr std::array<FieldInfo, static_cast<std::size_t>(EventField::count)> kEventFields{{
    {"index", Width::u64},
    {"file", Width::u32},
    {"l1_id", Width::u32},
    {"global_id", Width::u64},
    {"bcid", Width::u32},
    {"run_number", Width::u32},
    {"lumi_block", Width::u32},
    {"run_type", Width::u32},
    {"trigger_type", Width::u32},
    {"time_ns", Width::u64},
    {"status", Width::u32},
    {"source_id", Width::u32},
    {"size", Width::u32},
}};
inline constexpr std::array<FieldInfo, static_cast<std::size_t>(FragmentField::count)> kFragmentFields{{
    {"fragment.source_id", Width::u32},
    {"fragment.l1_id", Width::u32},
    {"fragment.bcid", Width::u32},
    {"fragment.trigger_type", Width::u32},
    {"fragment.run_number", Width::u32},
    {"fragment.detector_event_type", Width::u32},
    {"fragment.status", Width::u32},
    {"fragment.missing_links", Width::u32},
    {"fragment.removed_links", Width::u32},
    {"fragment.size", Width::u32},
}};
inline constexpr std::array<FieldInfo, static_cast<std::size_t>(ChunkField::count)> kChunkFields{{
    {"chunk.source_id", Width::u32},  // the fragment's source id: a link id is unique only within a ROB
    {"chunk.link", Width::u32},
    {"chunk.status", Width::u16},
    {"chunk.size", Width::u32},
}};

/// Releases memory of grown().
struct Freed {
  std::size_t mapped_bytes = 0;  ///< 0: the memory is from malloc()
  void operator()(std::byte* memory) const noexcept;
};
using Memory = std::unique_ptr<std::byte, Freed>;

/// The same bytes with room for `bytes`; throws std::bad_alloc. Large memory is mapped in advance in large pages and
/// allocated on the first write: a page fault for each 4 KiB would take as long as finding the chunks.
Memory grown(Memory memory, std::size_t used_bytes, std::size_t bytes);

/// Releases the memory after the used bytes.
Memory trimmed(Memory memory, std::size_t used_bytes);

/// Columns with one value for each row.
class Table {
 public:
  Table(std::span<const FieldInfo> fields, const std::vector<bool>& wanted);

  bool any() const { return any_; }
  std::size_t rows() const { return rows_; }
  std::size_t room() const { return room_; }
  void cut_to(std::size_t rows) { rows_ = rows; }

  /// Adds a row; set() writes to it.
  void add_row() {
    if (rows_ == room_) grow(rows_ + 1);
    ++rows_;
  }
  void set(std::size_t field, std::uint64_t value) {
    if (std::byte* const column = columns_[field].get())
      std::memcpy(column + (rows_ - 1) * bytes_of(fields_[field].width), &value, bytes_of(fields_[field].width));
  }
  template <typename T>
  T* column(std::size_t field) {
    return reinterpret_cast<T*>(columns_[field].get());
  }
  void grow(std::size_t least);

  bool has(std::size_t field) const { return wanted_[field]; }
  Memory take(std::size_t field) { return trimmed(std::move(columns_[field]), rows_ * bytes_of(fields_[field].width)); }
  std::span<const FieldInfo> fields() const { return fields_; }

 private:
  std::span<const FieldInfo> fields_;
  std::vector<bool> wanted_;
  std::vector<Memory> columns_;  // columns that are not requested stay empty
  std::size_t rows_ = 0;
  std::size_t room_ = 0;
  bool any_ = false;
};

/// Concatenated bytes.
class Bytes {
 public:
  std::size_t size() const { return size_; }
  void cut_to(std::size_t size) { size_ = size; }
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    if (room_ - size_ < bytes.size()) grow(bytes.size());
    std::memcpy(memory_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  Memory take() { return trimmed(std::move(memory_), size_); }

 private:
  void grow(std::size_t more);
  Memory memory_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

/// The requested columns.
struct WantedColumns {
  std::vector<bool> event = std::vector<bool>(kEventFields.size());
  std::vector<bool> fragment = std::vector<bool>(kFragmentFields.size());
  std::vector<bool> chunk = std::vector<bool>(kChunkFields.size());
  bool chunk_data = false;
  bool fragments = false;  ///< the number of fragments per event is requested
  bool chunks = false;     ///< the numbers of chunks per event and per fragment are requested

  /// False if the field does not exist.
  bool add(std::string_view name);
};

/// The visitor of walk_event() that fills columns. begin(), the walk, then end() or undo().
class Columns {
 public:
  explicit Columns(const WantedColumns& wanted);

  void begin(std::uint64_t index, std::uint32_t file);
  void end();
  void undo();

  void event(const formats::FullEventView& view);
  void fragment(const formats::RobView& rob, const formats::RodView* rod, const formats::AbsentLinks& absent);
  std::optional<formats::DecodeError> chunk_records(std::span<const std::byte> rod_data);
  void chunk(const formats::ChunkRecord& record) { chunk(record.header.link_id, status_of(record.header), record.bytes); }

  void event(const formats::EventFields& fields, std::uint32_t status, std::size_t bytes);
  /// For recordings.
  void fragment(std::uint32_t source_id, std::uint32_t l1id, std::size_t bytes);
  void chunk(std::uint32_t link, std::uint16_t status, std::span<const std::byte> bytes) {
    ++chunk_count_;
    if (!chunk_level_) return;
    if (chunk_rows_ == chunk_room_) grow_chunks(chunk_rows_ + 1);
    if (sources_ != nullptr) sources_[chunk_rows_] = source_;
    if (links_ != nullptr) links_[chunk_rows_] = link;
    if (statuses_ != nullptr) statuses_[chunk_rows_] = status;
    if (sizes_ != nullptr) sizes_[chunk_rows_] = static_cast<std::uint32_t>(bytes.size());
    if (data_ends_ != nullptr) {
      data.add(bytes);
      data_ends_[chunk_rows_] = static_cast<std::int64_t>(data.size());
    }
    ++chunk_rows_;
  }

  const WantedColumns wanted;
  Table events;
  Table fragments;
  Table chunks;  ///< rows() is valid after end()
  // Offsets: 0, then the end of each part.
  Table chunk_data_offsets;  ///< the ends of the chunks' bytes in `data`; rows() is valid after end()
  Table event_fragments;
  Table event_chunks;
  Table fragment_chunks;
  Bytes data;

 private:
  void end_fragment();
  void grow_chunks(std::size_t least);

  std::uint64_t index_ = 0;
  std::uint32_t file_ = 0;
  bool in_fragment_ = false;
  bool chunk_level_ = false;
  std::uint32_t source_ = 0;  // the source id of the present fragment
  std::uint32_t* sources_ = nullptr;
  std::uint32_t* links_ = nullptr;
  std::uint16_t* statuses_ = nullptr;
  std::uint32_t* sizes_ = nullptr;
  std::int64_t* data_ends_ = nullptr;
  std::size_t chunk_rows_ = 0;
  std::size_t chunk_room_ = 0;
  std::uint64_t chunk_count_ = 0;     // number of chunks in whole events, and in the present one so far
  std::uint64_t fragment_count_ = 0;  // number of fragments, counted in the same way
  struct Mark {
    std::size_t events = 0, fragments = 0, fragment_chunks = 0, chunk_rows = 0, data = 0;
    std::uint64_t chunk_count = 0, fragment_count = 0;
  } mark_;
};

}  // namespace rodeo::python::data
