// Regions of a function behind file descriptors: accesses are single loads and stores if a region can be mapped, else system
// calls.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "card/pci/function.h"
#include "card/pci/owner_process.h"

namespace rodeo::card::pci {

/// For any thread. Mappings live as long as the object.
class Regions {
 public:
  static constexpr unsigned kCount = kConfigurationRegion + 1;

  explicit Regions(std::string name) : name_(std::move(name)) {}
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  ~Regions();

  /// Call this before the first access: region `number` begins at `base` in `fd`. `mapped_only`: it cannot be read as a
  /// file.
  void add(unsigned number, int fd, std::uint64_t base, FunctionRegion info, bool mapped_only);

  Result<FunctionRegion> info(unsigned number) const;
  /// Checks that read() or write() can make this access.
  Result<void> check(unsigned number, std::uint64_t offset, std::size_t bytes, bool write) const;
  Result<void> read(unsigned number, std::uint64_t offset, std::span<std::byte> bytes);
  Result<void> write(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes);
  Result<MappedRegisters> map(unsigned number, MappableRange range);

  /// Sets the bits `set` and clears the bits `clear` of the command register in the configuration space.
  Result<void> change_command(std::uint16_t set, std::uint16_t clear);

 private:
  struct Map {
    MappableRange range;
    std::byte* memory;  // accessed only through `registers`
    MappedRegisters registers;
  };
  struct Region {
    FunctionRegion info;
    int fd = -1;
    std::uint64_t base = 0;
    bool mapped_only = false;
    bool tried = false;  // read() and write() have tried to map it
    std::vector<Map> maps;
  };

  /// The register for an access of this width; empty: access the file.
  template <typename Word>
  Result<MappedRegister<Word>> mapped(unsigned number, std::uint64_t offset);
  Result<MappedRegisters> map_range(Region& region, unsigned number, MappableRange range);
  /// False: the range is not mapped; access the file.
  template <typename Word>
  Result<bool> load(unsigned number, std::uint64_t offset, std::span<std::byte> bytes);
  template <typename Word>
  Result<bool> store(unsigned number, std::uint64_t offset, std::span<const std::byte> bytes);
  std::unexpected<Error> refused(unsigned number, std::uint64_t offset, std::string what) const;

  std::string name_;
  OwnMutex mutex_{name_};
  std::array<Region, kCount> regions_;
};

}  // namespace rodeo::card::pci
