#include "card/pci/function.h"

namespace rodeo::card::pci {

Result<void> Function::exchange(std::span<RegionOperation> operations) {
  for (RegionOperation& operation : operations) {
    const auto bytes =
        std::as_writable_bytes(std::span(&operation.value, 1)).first(operation.bytes <= 8 ? operation.bytes : 0);
    if (!operation.write) operation.value = 0;
    auto done =
        operation.write ? write(operation.region, operation.offset, bytes) : read(operation.region, operation.offset, bytes);
    if (!done) return done;
  }
  return {};
}

}  // namespace rodeo::card::pci
