#include "card/pci/found_function.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>

#include "base/runtime_dir.h"
#include "card/pci/vfio_user_client.h"

namespace rodeo::card::pci {

std::vector<FoundFunction> emulated_functions() {
  std::vector<FoundFunction> found;
  const std::filesystem::path directory = base::runtime_directory_name() / "cards";
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0) return found;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) {
    found.push_back({.back_end = BackEnd::vfio_user,
                     .place = directory,
                     .problem = fmt::format("cannot read the directory: {}", error.message())});
    return found;
  }
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (error) break;
    const std::filesystem::path path = entries->path();
    if (path.extension() != ".sock") continue;
    FoundFunction function{.back_end = BackEnd::vfio_user, .place = path};
    if (const auto address = Address::parse(path.stem().native())) {
      function.address = *address;
      function.lock_file = directory / (address->text() + ".lock");
    } else {
      function.problem = address.error().what;
    }
    if (::lstat(path.c_str(), &status) != 0) continue;  // its server has just ended
    if (!S_ISSOCK(status.st_mode)) function.problem = "it is not a socket";
    found.push_back(std::move(function));
  }
  std::ranges::sort(found, {}, &FoundFunction::address);
  return found;
}

std::vector<FoundFunction> all_functions() {
  std::vector<FoundFunction> found = emulated_functions();
  std::ranges::stable_sort(found, {}, &FoundFunction::address);
  return found;
}

Result<std::unique_ptr<Function>> open_function(const FoundFunction& function) {
  if (!function.problem.empty())
    return std::unexpected(Error{"card.unusable", function.problem, function.place.native(), "see `rodeo card list`"});
  if (function.back_end == BackEnd::vfio_user) return open_vfio_user(function.place, function.address);
  return std::unexpected(Error{"card.unusable", "this build has no back end for it", function.address.text()});
}

}  // namespace rodeo::card::pci
