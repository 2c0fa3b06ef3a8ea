#include "card/pci/regions.h"

#include <linux/pci_regs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace rodeo::card::pci {
namespace {

bool is_width(std::size_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

}  // namespace

Regions::~Regions() {
  for (Region& region : regions_) {
    for (const Map& map : region.maps) ::munmap(map.memory, map.range.bytes);
  }
}

void Regions::add(unsigned number, int fd, std::uint64_t base, FunctionRegion info, bool mapped_only) {
  regions_.at(number) = Region{std::move(info), fd, base, mapped_only, false, {}};
}

std::unexpected<Error> Regions::refused(unsigned number, std::uint64_t offset, std::string what) const {
  return std::unexpected(
      Error{"card.bad_access", std::move(what), fmt::format("{} region {} at {:#x}", name_, number, offset), ""});
}

Result<FunctionRegion> Regions::info(unsigned number) const {
  if (number >= kCount) return refused(number, 0, fmt::format("regions are numbered from 0 to {}", kCount - 1));
  return regions_[number].info;
}

Result<void> Regions::check(unsigned number, std::uint64_t offset, std::size_t bytes, bool write) const {
  if (number >= kCount || regions_[number].info.bytes == 0) return refused(number, offset, "the card has no such region");
  const FunctionRegion& info = regions_[number].info;
  const auto wrong = [&](std::string what) {
    Error error = refused(number, offset, std::move(what)).error();
    error.next = "offsets are bytes from the region's begin; accesses are aligned to their size";
    return std::unexpected(std::move(error));
  };
  if (!is_width(bytes)) return wrong(fmt::format("an access has 1, 2, 4 or 8 bytes, not {}", bytes));
  if (offset % bytes != 0) return wrong(fmt::format("an access of {} bytes must begin at a multiple of its size", bytes));
  if (bytes > info.bytes || offset > info.bytes - bytes)
    return wrong(fmt::format("the access is outside the region, which has {:#x} bytes", info.bytes));
  if (write ? !info.writable : !info.readable)
    return refused(number, offset, write ? "the region cannot be written" : "the region cannot be read");
  return {};
}

Result<MappedRegisters> Regions::map_range(Region& region, unsigned number, MappableRange range) {
  const std::uint64_t begin = region.base + range.offset;
  struct stat file{};
  // A file that is shorter than the region would raise SIGBUS at the first access.
  if (::fstat(region.fd, &file) == 0 && S_ISREG(file.st_mode) &&
      (begin < range.offset || static_cast<std::uint64_t>(file.st_size) < begin ||
       static_cast<std::uint64_t>(file.st_size) - begin < range.bytes))
    return refused(number, range.offset, "the file behind it is shorter than the region");
  void* memory =
      ::mmap(nullptr, range.bytes, (region.info.readable ? PROT_READ : 0) | (region.info.writable ? PROT_WRITE : 0),
             MAP_SHARED, region.fd, static_cast<off_t>(begin));
  if (memory == MAP_FAILED)
    return refused(number, range.offset, fmt::format("cannot map {} bytes: {}", range.bytes, std::strerror(errno)));
  auto* const begins = static_cast<std::byte*>(memory);
  return region.maps.emplace_back(range, begins, MappedRegisters(begins, range.bytes)).registers;
}

template <typename Word>
Result<MappedRegister<Word>> Regions::mapped(unsigned number, std::uint64_t offset) {
  const auto held = RODEO_TRY(mutex_.hold());
  Region& region = regions_[number];
  if (!region.tried) {
    region.tried = true;
    for (const MappableRange& range : region.info.mappable)
      (void)map_range(region, number, range);  // if this fails, read() and write() use the file
  }
  for (const Map& map : region.maps) {
    if (offset < map.range.offset) continue;
    if (const auto found = map.registers.at<Word>(offset - map.range.offset)) return found;
  }
  return MappedRegister<Word>();
}

template <typename Word>
Result<bool> Regions::load(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) {
  const auto place = RODEO_TRY(mapped<Word>(number, offset));
  if (!place) return false;
  const Word value = place.load();
  std::memcpy(bytes.data(), &value, sizeof value);
  return true;
}

template <typename Word>
Result<bool> Regions::store(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto place = RODEO_TRY(mapped<Word>(number, offset));
  if (!place) return false;
  Word value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  place.store(value);
  return true;
}

Result<void> Regions::read(unsigned number, std::uint64_t offset, std::span<std::byte> bytes) {
  RODEO_TRY(check(number, offset, bytes.size(), false));
  const bool done = RODEO_TRY(bytes.size() == 1   ? load<std::uint8_t>(number, offset, bytes)
                              : bytes.size() == 2 ? load<std::uint16_t>(number, offset, bytes)
                              : bytes.size() == 4 ? load<std::uint32_t>(number, offset, bytes)
                                                  : load<std::uint64_t>(number, offset, bytes));
  if (done) return {};
  const Region& region = regions_[number];
  if (region.mapped_only) return refused(number, offset, "the region cannot be mapped");
  if (::pread(region.fd, bytes.data(), bytes.size(), static_cast<off_t>(region.base + offset)) !=
      static_cast<ssize_t>(bytes.size()))
    return refused(number, offset, fmt::format("cannot read: {}", std::strerror(errno)));
  return {};
}

Result<void> Regions::write(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes) {
  RODEO_TRY(check(number, offset, bytes.size(), true));
  const bool done = RODEO_TRY(bytes.size() == 1   ? store<std::uint8_t>(number, offset, bytes)
                              : bytes.size() == 2 ? store<std::uint16_t>(number, offset, bytes)
                              : bytes.size() == 4 ? store<std::uint32_t>(number, offset, bytes)
                                                  : store<std::uint64_t>(number, offset, bytes));
  if (done) return {};
  const Region& region = regions_[number];
  if (region.mapped_only) return refused(number, offset, "the region cannot be mapped");
  if (::pwrite(region.fd, bytes.data(), bytes.size(), static_cast<off_t>(region.base + offset)) !=
      static_cast<ssize_t>(bytes.size()))
    return refused(number, offset, fmt::format("cannot write: {}", std::strerror(errno)));
  return {};
}

Result<MappedRegisters> Regions::map(unsigned number, MappableRange range) {
  if (number >= kCount || regions_[number].info.bytes == 0)
    return refused(number, range.offset, "the card has no such region");
  const auto held = RODEO_TRY(mutex_.hold());
  Region& region = regions_[number];
  for (const MappableRange& mappable : region.info.mappable) {
    const bool within = range.offset >= mappable.offset && range.bytes <= mappable.bytes && range.bytes > 0 &&
                        range.offset - mappable.offset <= mappable.bytes - range.bytes;
    if (!within || range.offset % 4096 != 0) continue;
    return map_range(region, number, range);
  }
  return refused(number, range.offset, fmt::format("{} bytes there cannot be mapped", range.bytes));
}

Result<void> Regions::change_command(std::uint16_t set, std::uint16_t clear) {
  std::uint16_t command = 0;
  const auto bytes = std::as_writable_bytes(std::span(&command, 1));
  RODEO_TRY(read(kConfigurationRegion, PCI_COMMAND, bytes));
  command = static_cast<std::uint16_t>((command | set) & ~clear);
  RODEO_TRY(write(kConfigurationRegion, PCI_COMMAND, bytes));
  // After this read, the write has reached the card.
  return read(kConfigurationRegion, PCI_COMMAND, bytes);
}

}  // namespace rodeo::card::pci
