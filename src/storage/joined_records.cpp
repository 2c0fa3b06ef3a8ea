#include "storage/joined_records.h"

#include <algorithm>

#include "formats/file_marks.h"
#include "storage/writer_files.h"

namespace rodeo::storage {

void JoinedRecords::add(const formats::DecodedFileHeader& header) {
  EventFileSettings one = settings_like(header);
  const std::set<SourceId> named = robs_of(header);
  all_name_robs_ = all_name_robs_ && !named.empty();
  all_have_global_ids_ = all_have_global_ids_ && formats::IdsMark::parse(header.free_string(formats::kIdsKey));
  robs_.insert(named.begin(), named.end());
  // New files do not compress whole events, so this string goes.
  std::erase_if(one.free_strings, [](const std::string& text) { return text.starts_with("Compression="); });
  if (!settings_) {
    settings_ = std::move(one);
    return;
  }
  EventFileSettings& all = *settings_;
  all.foreign_events = all.foreign_events || one.foreign_events;
  if (all.provable != one.provable) all.provable.reset();
  if (all.application != one.application) all.application = "Rodeo";
  const auto has = [](const EventFileSettings& of, const std::string& text) {
    return std::ranges::find(of.free_strings, text) != of.free_strings.end();
  };
  const auto is_links = [](const std::string& text) { return text.starts_with(formats::kLinksKey); };
  std::erase_if(all.free_strings, [&](const std::string& text) { return !is_links(text) && !has(one, text); });
  // Readouts of one run may have front-ends of different layouts; then the new file has no layout.
  const std::string ids = std::string(formats::kIdsKey) + '=';
  const bool named_ids =
      std::ranges::any_of(all.free_strings, [&](const std::string& text) { return text.starts_with(ids); });
  if (all_have_global_ids_ && !named_ids) all.free_strings.push_back(formats::IdsMark{}.text());
  for (const std::string& text : one.free_strings) {
    if (is_links(text) && !has(all, text)) all.free_strings.push_back(text);
  }
}

}  // namespace rodeo::storage
