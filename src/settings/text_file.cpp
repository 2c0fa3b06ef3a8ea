#include "settings/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/units.h"

namespace rodeo::settings {

Result<std::string> read_text_file(const std::filesystem::path& file, std::size_t most) {
  const auto unreadable = [&](const std::string& why, const char* next) {
    return std::unexpected(Error{"config.unreadable", why, file.string(), next});
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return unreadable("it is a directory", "name a file that you may read");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  char part[64 << 10];
  while (stream.good()) {
    stream.read(part, sizeof part);
    text.append(part, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most)
      return unreadable(fmt::format("it has more than {}", base::format_size(most)), "is it the file that you mean?");
  }
  if (stream.is_open() && stream.eof() && !stream.bad()) return text;
  const int reason = errno == 0 ? EIO : errno;
  return unreadable(fmt::format("cannot read the file: {}", std::strerror(reason)),
                    reason == ENOENT ? "is the name right?" : "name a file that you may read");
}

}  // namespace rodeo::settings
