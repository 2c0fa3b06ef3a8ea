#include "data_file.h"

#include "storage/file_verify.h"

namespace rodeo::python::data {

std::unique_ptr<DataFile> DataFile::open(const std::string& path, const FileOptions& options) {
  auto opened = base::MappedFile::open(path, base::MappedFile::Access::random);
  if (!opened) throw FaultError({.error = opened.error(), .path = path});
  const auto mapped = std::make_shared<const base::MappedFile>(*std::move(opened));
  const auto no_data = [&](const char* code, std::string what, std::string next) -> FaultError {
    return FaultError({.error = {code, std::move(what), path, std::move(next)}, .path = path});
  };
  switch (storage::file_kind(mapped->bytes())) {
    case storage::FileKind::event_file: return open_event_file(path, mapped, options);
    case storage::FileKind::block_recording: return open_block_recording(path, mapped, options);
    case storage::FileKind::superpage_dump: return open_page_dump(path, mapped, options);
    case storage::FileKind::empty:
      throw no_data("data.empty", "the file is empty", "its writer was stopped before the first byte reached the disk");
    case storage::FileKind::zeros:
      throw no_data("data.zeros", "the file starts with nothing but zeros",
                    "space was reserved but not written, or the disk lost it");
    case storage::FileKind::unknown: break;
  }
  throw no_data("data.unknown_kind", "the file is no event file, no recording of FELIX blocks and no dump of superpages",
                "`rodeo data verify` says whether there is anything to recover");
}

void DataFile::check_pages() const {
  if (const auto whole = mapped_->check(); !whole) throw FaultError({.error = whole.error(), .path = path_});
}

}  // namespace rodeo::python::data
