#include "columns.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace rodeo::python::data {
namespace {

using namespace formats;

constexpr std::array<FieldInfo, 1> kOffsets{{{"offset", Width::i64}}};

std::size_t more_than(std::size_t room, std::size_t least) { return std::max({room + room / 2, least, std::size_t{1024}}); }

constexpr std::size_t at(EventField field) { return static_cast<std::size_t>(field); }
constexpr std::size_t at(FragmentField field) { return static_cast<std::size_t>(field); }
constexpr std::size_t at(ChunkField field) { return static_cast<std::size_t>(field); }

}  // namespace

void Freed::operator()(std::byte* memory) const noexcept {
  if (mapped_bytes == 0) return std::free(memory);
  ::munmap(memory, mapped_bytes);
}

Memory grown(Memory memory, std::size_t used_bytes, std::size_t bytes) {
  constexpr std::size_t kSmall = 1 << 20;
  constexpr std::size_t kAhead = std::size_t{1} << 30;  // this takes addresses, not memory
  const std::size_t mapped = memory.get_deleter().mapped_bytes;
  if (mapped >= bytes) return memory;
  if (mapped > 0) {
    const std::size_t more = (bytes + kAhead - 1) / kAhead * kAhead;
    void* const moved = ::mremap(memory.get(), mapped, more, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) throw std::bad_alloc();
    (void)memory.release();
    return {static_cast<std::byte*>(moved), Freed{more}};
  }
  if (bytes > kSmall) {
    const std::size_t room = (bytes + kAhead - 1) / kAhead * kAhead;
    void* const made = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) {
      ::madvise(made, room, MADV_HUGEPAGE);
      Memory more(static_cast<std::byte*>(made), Freed{room});
      if (used_bytes > 0) std::memcpy(more.get(), memory.get(), used_bytes);
      return more;
    }
  }
  auto* const more = static_cast<std::byte*>(std::realloc(memory.get(), bytes));
  if (more == nullptr) throw std::bad_alloc();
  (void)memory.release();
  return {more, Freed{}};
}

Memory trimmed(Memory memory, std::size_t used_bytes) {
  const std::size_t mapped = memory.get_deleter().mapped_bytes;
  constexpr std::size_t kPage = 4096;
  const std::size_t kept = std::max((used_bytes + kPage - 1) / kPage * kPage, kPage);
  if (mapped <= kept || ::munmap(memory.get() + kept, mapped - kept) != 0) return memory;
  return {memory.release(), Freed{kept}};
}

Table::Table(std::span<const FieldInfo> fields, const std::vector<bool>& wanted)
    : fields_(fields), wanted_(wanted), columns_(fields.size()), any_(std::ranges::find(wanted, true) != wanted.end()) {}

void Table::grow(std::size_t least) {
  const std::size_t room = more_than(room_, least);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (wanted_[i])
      columns_[i] = grown(std::move(columns_[i]), rows_ * bytes_of(fields_[i].width), room * bytes_of(fields_[i].width));
  }
  room_ = room;
}

void Bytes::grow(std::size_t more) {
  const std::size_t room = more_than(room_, size_ + more);
  memory_ = grown(std::move(memory_), size_, room);
  room_ = room;
}

bool WantedColumns::add(std::string_view name) {
  const auto mark = [&](std::span<const FieldInfo> fields, std::vector<bool>& level) {
    const auto found = std::ranges::find(fields, name, &FieldInfo::name);
    if (found == fields.end()) return false;
    level[static_cast<std::size_t>(found - fields.begin())] = true;
    return true;
  };
  if (mark(kEventFields, event)) return true;
  if (mark(kFragmentFields, fragment)) return fragments = true;
  if (mark(kChunkFields, chunk)) return chunks = true;
  if (name == "chunk.data") return chunk_data = chunks = true;
  return false;
}

Columns::Columns(const WantedColumns& given)
    : wanted(given),
      events(kEventFields, wanted.event),
      fragments(kFragmentFields, wanted.fragment),
      chunks(kChunkFields, wanted.chunk),
      chunk_data_offsets(kOffsets, {wanted.chunk_data}),
      event_fragments(kOffsets, {wanted.fragments}),
      event_chunks(kOffsets, {wanted.chunks}),
      fragment_chunks(kOffsets, {wanted.fragments && wanted.chunks}),
      chunk_level_(wanted.chunks) {
  for (Table* const table : {&chunk_data_offsets, &event_fragments, &event_chunks, &fragment_chunks}) {
    table->add_row();
    table->set(0, 0);
  }
}

void Columns::grow_chunks(std::size_t least) {
  // The offsets have one row more than the chunks, which is there from the beginning.
  chunks.cut_to(chunk_rows_);
  chunks.grow(least);
  chunk_data_offsets.cut_to(chunk_rows_ + 1);
  chunk_data_offsets.grow(least + 1);
  chunk_room_ = chunks.room();
  sources_ = chunks.column<std::uint32_t>(at(ChunkField::source_id));
  links_ = chunks.column<std::uint32_t>(at(ChunkField::link));
  statuses_ = chunks.column<std::uint16_t>(at(ChunkField::status));
  sizes_ = chunks.column<std::uint32_t>(at(ChunkField::size));
  data_ends_ = chunk_data_offsets.column<std::int64_t>(0);
  if (data_ends_ != nullptr) ++data_ends_;
}

namespace {

/// Fills existing rows. It is a separate object so that the pointers stay in registers, unlike members of Columns.
struct ChunkRows {
  std::uint32_t* links;
  std::uint16_t* statuses;
  std::uint32_t* sizes;
  std::size_t row;

  void chunk(const ChunkRecord& record) {
    if (links != nullptr) links[row] = record.header.link_id;
    if (statuses != nullptr) statuses[row] = status_of(record.header);
    if (sizes != nullptr) sizes[row] = static_cast<std::uint32_t>(record.bytes.size());
    ++row;
  }
};

}  // namespace

/// All records of a fragment.
std::optional<DecodeError> Columns::chunk_records(std::span<const std::byte> rod_data) {
  if (!chunk_level_ || wanted.chunk_data) return visit_chunks(rod_data, *this);
  const std::size_t most = rod_data.size() / sizeof(ChunkHeader);
  if (chunk_room_ - chunk_rows_ < most) grow_chunks(chunk_rows_ + most);
  ChunkRows rows{links_, statuses_, sizes_, chunk_rows_};
  const auto wrong = visit_chunks(rod_data, rows);
  if (sources_ != nullptr) std::fill(sources_ + chunk_rows_, sources_ + rows.row, source_);
  chunk_count_ += rows.row - chunk_rows_;
  chunk_rows_ = rows.row;
  return wrong;
}

void Columns::begin(std::uint64_t index, std::uint32_t file) {
  index_ = index;
  file_ = file;
  in_fragment_ = false;
  mark_ = {events.rows(), fragments.rows(), fragment_chunks.rows(), chunk_rows_, data.size(), chunk_count_, fragment_count_};
}

void Columns::undo() {
  in_fragment_ = false;
  events.cut_to(mark_.events);
  fragments.cut_to(mark_.fragments);
  fragment_chunks.cut_to(mark_.fragment_chunks);
  chunk_rows_ = mark_.chunk_rows;
  data.cut_to(mark_.data);
  chunks.cut_to(chunk_rows_);
  chunk_data_offsets.cut_to(chunk_rows_ + 1);
  chunk_count_ = mark_.chunk_count;
  fragment_count_ = mark_.fragment_count;
}

void Columns::end_fragment() {
  if (!in_fragment_) return;
  in_fragment_ = false;
  ++fragment_count_;
  fragment_chunks.add_row();
  fragment_chunks.set(0, chunk_count_);
}

void Columns::end() {
  end_fragment();
  event_fragments.add_row();
  event_fragments.set(0, fragment_count_);
  event_chunks.add_row();
  event_chunks.set(0, chunk_count_);
  chunks.cut_to(chunk_rows_);
  chunk_data_offsets.cut_to(chunk_rows_ + 1);
}

void Columns::event(const FullEventView& view) {
  event(view, view.status.empty() ? 0 : view.status[0], view.words.size() * kWordBytes);
}

void Columns::event(const EventFields& fields, std::uint32_t status, std::size_t bytes) {
  events.add_row();
  if (!events.any()) return;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  events.set(at(EventField::index), index_);
  events.set(at(EventField::file), file_);
  events.set(at(EventField::l1_id), fields.l1id.value);
  events.set(at(EventField::global_id), fields.global_id);
  events.set(at(EventField::bcid), fields.bcid);
  events.set(at(EventField::run_number), fields.run_number);
  events.set(at(EventField::lumi_block), fields.lumi_block);
  events.set(at(EventField::run_type), fields.run_type);
  events.set(at(EventField::trigger_type), fields.trigger_type);
  events.set(at(EventField::time_ns), fields.bc_time_s * kSecond + fields.bc_time_ns);
  events.set(at(EventField::status), status);
  events.set(at(EventField::source_id), fields.source_id.value);
  events.set(at(EventField::size), bytes);
}

void Columns::fragment(const RobView& rob, const RodView* rod, const AbsentLinks& absent) {
  end_fragment();
  in_fragment_ = true;
  source_ = rob.source_id.value;
  if (!fragments.any()) return;
  fragments.add_row();
  const RodHeader header = rod == nullptr ? RodHeader{} : rod->header;
  const bool has_status = rod != nullptr && !rod->status.empty();
  fragments.set(at(FragmentField::source_id), rob.source_id.value);
  fragments.set(at(FragmentField::l1_id), header.l1id.value);
  fragments.set(at(FragmentField::bcid), header.bcid);
  fragments.set(at(FragmentField::trigger_type), header.trigger_type);
  fragments.set(at(FragmentField::run_number), header.run_number);
  fragments.set(at(FragmentField::detector_event_type), header.detector_event_type);
  fragments.set(at(FragmentField::status), has_status ? rod->status[0] : rob.status.empty() ? 0 : rob.status[0]);
  fragments.set(at(FragmentField::missing_links), absent.missing);
  fragments.set(at(FragmentField::removed_links), absent.removed());
  fragments.set(at(FragmentField::size), rod == nullptr ? rob.payload.bytes().size() : rod->data.bytes().size());
}

void Columns::fragment(std::uint32_t source_id, std::uint32_t l1id, std::size_t bytes) {
  end_fragment();
  in_fragment_ = true;
  source_ = source_id;
  if (!fragments.any()) return;
  fragments.add_row();
  for (std::size_t field = 0; field < kFragmentFields.size(); ++field) fragments.set(field, 0);
  fragments.set(at(FragmentField::source_id), source_id);
  fragments.set(at(FragmentField::l1_id), l1id);
  fragments.set(at(FragmentField::size), bytes);
}

}  // namespace rodeo::python::data
