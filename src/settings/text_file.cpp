#include "settings/text_file.h"

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "base/units.h"

namespace rodeo::settings {

Result<std::string> read_text_file(const std::filesystem::path& file, std::size_t most) {
  const auto unreadable = [](Error error) {
    error.code = "config.unreadable";
    return std::unexpected(std::move(error));
  };
  const auto mapped = base::MappedFile::open(file.string());
  if (!mapped) return unreadable(mapped.error());
  const auto bytes = mapped->bytes();
  if (bytes.size() > most)
    return unreadable(
        {{}, fmt::format("it has more than {}", base::format_size(most)), file.string(), "is it the file that you mean?"});
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto whole = mapped->check(); !whole) return unreadable(whole.error());
  return text;
}

}  // namespace rodeo::settings
