#include "card/pci/sysfs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "card/pci/found_function.h"
#include "formats/temporary_directory.h"

namespace rodeo::card::pci {
namespace {

namespace fs = std::filesystem;

/// A tree like sysfs, to which a test adds functions.
class Sysfs {
 public:
  fs::path add(const std::string& address, const std::string& vendor, const std::string& device) {
    const fs::path place = root() / "sys/bus/pci/devices" / address;
    fs::create_directories(place);
    if (!vendor.empty()) std::ofstream(place / "vendor") << vendor << "\n";
    std::ofstream(place / "device") << device << "\n";
    return place;
  }
  void drive(const fs::path& place, const std::string& driver) {
    fs::create_directories(root() / "sys/bus/pci/drivers" / driver);
    fs::create_symlink(root() / "sys/bus/pci/drivers" / driver, place / "driver");
  }
  void group(const fs::path& place, unsigned number) {
    const fs::path group = root() / "sys/kernel/iommu_groups" / std::to_string(number);
    fs::create_directories(group / "devices");
    fs::create_symlink(group, place / "iommu_group");
    fs::create_symlink(place, group / "devices" / place.filename());
  }
  fs::path root() const { return directory_.path(); }

 private:
  test::TemporaryDirectory directory_;
};

TEST(Sysfs, TellsWhoDrivesAFunctionAndWhereItIs) {
  Sysfs sysfs;
  const fs::path card = sysfs.add("0000:3b:00.0", "0x10dc", "0x0034");
  sysfs.drive(card, "vfio-pci");
  sysfs.group(card, 17);
  std::ofstream(card / "numa_node") << "1\n";
  const auto found = find_function(Address::parse("3b:00.0").value(), sysfs.root());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->vendor, 0x10dc);
  EXPECT_EQ(found->device, 0x0034);
  EXPECT_EQ(found->driver, "vfio-pci");
  EXPECT_EQ(found->iommu_group, 17u);
  EXPECT_EQ(found->numa_node, 1);
  EXPECT_EQ(usable_back_end(*found, false), BackEnd::vfio);
  EXPECT_EQ(functions_of_group(17, sysfs.root()), std::vector{found->address});
}

TEST(Sysfs, AFunctionThatIsNotThereIsNotFound) {
  const auto found = find_function(Address::parse("3b:00.0").value(), Sysfs().root());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, "card.not_found");
}

TEST(Sysfs, OneBadFunctionIsOneBadRow) {
  Sysfs sysfs;
  sysfs.add("0000:10:00.0", "", "0x0034");
  sysfs.add("0000:20:00.0", "0x10dc", "none");
  sysfs.add("0000:05:00.0", "0x10dc", "0x0033");
  sysfs.add("10000:e1:00.0", "0x8086", "0x1234");  // only hypervisors use this domain
  const auto functions = list_functions(sysfs.root());
  ASSERT_EQ(functions.size(), 3u);
  EXPECT_EQ(functions[0].address.text(), "0000:05:00.0");
  EXPECT_EQ(functions[0].problem, "");
  EXPECT_NE(functions[1].problem, "");
  EXPECT_NE(functions[2].problem, "");
}

TEST(Sysfs, AHostWithoutPciHasNoFunctions) { EXPECT_TRUE(list_functions("/nowhere").empty()); }

TEST(Sysfs, WhatStandsInTheWayIsSaidWithItsRemedy) {
  Sysfs sysfs;
  const fs::path nobody = sysfs.add("0000:01:00.0", "0x10dc", "0x0034");
  sysfs.group(nobody, 1);
  const fs::path other = sysfs.add("0000:02:00.0", "0x10dc", "0x0034");
  sysfs.drive(other, "uio_pci_dma");
  const fs::path no_iommu = sysfs.add("0000:03:00.0", "0x10dc", "0x0034");
  sysfs.drive(no_iommu, "vfio-pci");
  const fs::path uio = sysfs.add("0000:04:00.0", "0x10dc", "0x0034");
  sysfs.drive(uio, "uio_pci_generic");
  fs::create_directories(uio / "uio" / "uio3");
  const auto functions = list_functions(sysfs.root());
  ASSERT_EQ(functions.size(), 4u);
  const auto refusal = [&](std::size_t row) { return usable_back_end(functions[row], false).error(); };
  EXPECT_EQ(refusal(0).code, "card.driver");
  EXPECT_NE(refusal(0).next.find("vfio-pci > /sys/bus/pci/devices/0000:01:00.0/driver_override"), std::string::npos);
  EXPECT_NE(refusal(1).what.find("uio_pci_dma"), std::string::npos);
  EXPECT_EQ(refusal(2).code, "card.no_iommu");
  EXPECT_EQ(refusal(3).code, "card.driver");
  EXPECT_EQ(usable_back_end(functions[3], true), BackEnd::uio);
  EXPECT_EQ(functions[3].uio, 3u);
}

TEST(Sysfs, ErrorsOfTheLinkAreThoseThatTheKernelCounts) {
  Sysfs sysfs;
  const fs::path card = sysfs.add("0000:3b:00.0", "0x10dc", "0x0034");
  const auto address = Address::parse("3b:00.0").value();
  EXPECT_FALSE(link_errors(address, sysfs.root()));
  std::ofstream(card / "aer_dev_correctable") << "RxErr 3\nBadTLP 2\nTOTAL_ERR_COR 5\n";
  std::ofstream(card / "aer_dev_nonfatal") << "Undefined 0\nTOTAL_ERR_NONFATAL 1\n";
  EXPECT_FALSE(link_errors(address, sysfs.root()));
  std::ofstream(card / "aer_dev_fatal") << "MalfTLP 4\nTOTAL_ERR_FATAL 4\n";
  const auto errors = link_errors(address, sysfs.root());
  ASSERT_TRUE(errors);
  EXPECT_EQ(errors->correctable, 5u);
  EXPECT_EQ(errors->nonfatal, 1u);
  EXPECT_EQ(errors->fatal, 4u);
}

TEST(Sysfs, RealFunctionsAreRowsOfTheListing) {
  Sysfs sysfs;
  const fs::path card = sysfs.add("0000:3b:00.0", "0x10dc", "0x0034");
  sysfs.drive(card, "vfio-pci");
  sysfs.group(card, 17);
  sysfs.add("0000:3c:00.0", "0x10dc", "0x0034");
  const auto rows = real_functions(sysfs.root());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].back_end, BackEnd::vfio);
  EXPECT_EQ(rows[0].problem, "");
  EXPECT_EQ(rows[0].id, (card_registers::PciId{0x10dc, 0x0034}));
  EXPECT_EQ(rows[0].lock_file.filename(), "0000:3b:00.0.lock");
  EXPECT_EQ(rows[1].problem, "no driver has the card");
}

}  // namespace
}  // namespace rodeo::card::pci
