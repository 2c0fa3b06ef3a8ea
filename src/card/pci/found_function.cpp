#include "card/pci/found_function.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "base/runtime_dir.h"
#include "card/pci/keeper.h"
#include "card/pci/sysfs.h"
#include "card/pci/uio.h"
#include "card/pci/vfio.h"
#include "card/pci/vfio_user_client.h"

namespace rodeo::card::pci {
namespace {

bool uio_is_allowed() {
  const char* said = std::getenv("RODEO_UIO");
  return said != nullptr && std::string_view(said) == "1";
}

}  // namespace

std::vector<FoundFunction> emulated_functions() {
  std::vector<FoundFunction> found;
  const std::filesystem::path directory = base::runtime_directory_name() / "cards";
  struct stat status{};
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) return found;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (error) break;
    const std::filesystem::path path = entries->path();
    if (path.extension() != ".sock" || ::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    FoundFunction function{.back_end = BackEnd::vfio_user, .place = path};
    if (const auto address = Address::parse(path.stem().native())) {
      function.address = *address;
      function.lock_file = directory / (address->text() + ".lock");
    } else {
      function.problem = address.error().what;
    }
    found.push_back(std::move(function));
  }
  std::ranges::sort(found, {}, &FoundFunction::address);
  return found;
}

Result<void> look_for_emulated_functions() {
  const std::filesystem::path directory = base::runtime_directory_name() / "cards";
  std::error_code error;
  const std::filesystem::directory_iterator entries(directory, error);
  if (!error || error == std::errc::no_such_file_or_directory) return {};
  // A runtime directory that is not a directory is a mistyped name; `rodeo card list` reports it.
  if (error == std::errc::not_a_directory && !std::filesystem::is_directory(directory.parent_path())) return {};
  return std::unexpected(Error{"base.runtime_dir", fmt::format("cannot look for emulated cards: {}", error.message()),
                               directory.native(), "set RODEO_RUNTIME_DIR to a directory of your own"});
}

std::vector<FoundFunction> real_functions(const std::filesystem::path& root) {
  std::vector<FoundFunction> found;
  for (const SysfsFunction& one : list_functions(root)) {
    FoundFunction function{
        .address = one.address, .place = function_directory(one.address, root), .numa_node = one.numa_node};
    if (one.problem.empty()) function.id = card_registers::PciId{one.vendor, one.device};
    if (const auto usable = usable_back_end(one, uio_is_allowed())) {
      function.back_end = *usable;
    } else {
      function.problem = usable.error().what;
    }
    if (const auto lock = function_lock_file(one.address)) function.lock_file = *lock;
    found.push_back(std::move(function));
  }
  return found;
}

std::vector<FoundFunction> all_functions() {
  std::vector<FoundFunction> found = emulated_functions();
  std::ranges::move(real_functions(), std::back_inserter(found));
  std::ranges::stable_sort(found, {}, &FoundFunction::address);
  return found;
}

Result<std::unique_ptr<Function>> open_function(const FoundFunction& function) {
  if (function.back_end == BackEnd::vfio_user) {
    if (!function.problem.empty())
      return std::unexpected(Error{"card.unusable", function.problem, function.place.native(), "see `rodeo card list`"});
    return open_vfio_user(function.place, function.address, {.silence = function.silence});
  }
  // Look again: this error also has the remedy, unlike `problem`.
  const auto found = RODEO_TRY(find_function(function.address));
  const auto usable = RODEO_TRY(usable_back_end(found, uio_is_allowed()));
  return usable == BackEnd::uio ? open_uio(function.address) : open_vfio(function.address);
}

}  // namespace rodeo::card::pci
