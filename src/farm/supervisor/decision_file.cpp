#include "farm/supervisor/decision_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rodeo::farm {

void DecisionFile::open() {
  if (path_.empty()) return;
  const auto fail = [&](const char* what) {
    throw SetupError({"farm.decisions", fmt::format("cannot {} the file of decisions: {}", what, std::strerror(errno)),
                      path_.string(), "give farm.supervisor.decisions a file that can be written, or leave it out"});
  };
  file_ = base::UniqueFd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) fail("open");
  struct stat is{};
  if (::fstat(file_.get(), &is) != 0) fail("get the size of");
  const auto size = static_cast<std::uint64_t>(is.st_size);
  if (S_ISREG(is.st_mode) && size % kRecordBytes != 0 &&
      ::ftruncate(file_.get(), static_cast<off_t>(size - size % kRecordBytes)) != 0)
    fail("truncate");
}

void DecisionFile::add(std::uint64_t id, dispatch::Verdict verdict) {
  if (path_.empty()) return;
  const std::size_t at = waiting_.size();
  waiting_.resize(at + kRecordBytes);
  std::memcpy(waiting_.data() + at, &id, sizeof id);
  waiting_[at + sizeof id] = static_cast<std::byte>(verdict);
}

Result<void> DecisionFile::flush() {
  while (!waiting_.empty()) {
    const ssize_t written = ::write(file_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return std::unexpected(Error{"farm.decisions",
                                   fmt::format("cannot write the file of decisions: {}", std::strerror(errno)),
                                   path_.string(), "free disk space; decisions are not safe before they are in the file"});
    waiting_.erase(waiting_.begin(), waiting_.begin() + written);
  }
  return {};
}

}  // namespace rodeo::farm
