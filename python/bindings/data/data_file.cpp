#include "data_file.h"

#include "storage/file_kind.h"

namespace rodeo::python::data {

std::unique_ptr<DataFile> DataFile::open(const std::string& path, const FileOptions& options) {
  auto opened = base::MappedFile::open(path, base::MappedFile::Access::random);
  if (!opened) throw FaultError({.error = opened.error(), .path = path});
  const auto mapped = std::make_shared<const base::MappedFile>(*std::move(opened));
  const storage::FileKind kind = storage::file_kind(mapped->bytes());
  switch (kind) {
    case storage::FileKind::event_file: return open_event_file(path, mapped, options);
    case storage::FileKind::block_recording: return open_block_recording(path, mapped, options);
    case storage::FileKind::superpage_dump: return open_page_dump(path, mapped, options);
    default: break;
  }
  throw FaultError({.error = storage::no_data_error(kind, mapped->bytes(), path), .path = path});
}

void DataFile::check_pages() const {
  if (const auto whole = mapped_->check(); !whole) throw FaultError({.error = whole.error(), .path = path_});
}

}  // namespace rodeo::python::data
