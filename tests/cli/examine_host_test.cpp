#include "cli/examine_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

using namespace rodeo::cli;
namespace fs = std::filesystem;

namespace {

/// A simulated host in a directory.
class Doctor : public testing::Test {
 protected:
  Doctor() : root_(fs::temp_directory_path() / ("doctor_test." + std::to_string(getpid()))) {
    fs::create_directories(root_);
  }
  ~Doctor() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }

  Finding find(const std::string& name, std::chrono::milliseconds disk_time = {}) {
    for (const Finding& finding : examine_host({.root = root_, .data_directory = root_, .disk_time = disk_time})) {
      if (finding.name == name) return finding;
    }
    ADD_FAILURE() << name << " was not examined";
    return {};
  }

  fs::path root_;
};

}  // namespace

TEST_F(Doctor, AHostThatTellsNothingIsExaminedAllTheSame) {
  const auto findings = examine_host({.root = root_, .data_directory = root_, .disk_time = {}});
  EXPECT_GE(findings.size(), 12u);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.value.empty()) << finding.name;
    EXPECT_FALSE(finding.meaning.empty()) << finding.name;
    EXPECT_TRUE(finding.health != Health::warning || !finding.remedy.empty()) << finding.name;
  }
}

TEST_F(Doctor, TooFewHugePagesHaveTheCommandThatSetsThemAside) {
  write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12");
  write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
  const Finding few = find("huge_pages_2mib");
  EXPECT_EQ(few.health, Health::warning);
  EXPECT_EQ(few.value, "3 of 12 free");
  EXPECT_THAT(few.remedy, testing::HasSubstr("sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"));
  write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512");
  EXPECT_EQ(find("huge_pages_2mib").health, Health::good);
}

TEST_F(Doctor, ReadsTheKernelsOwnWords) {
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  write("sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm");
  write("proc/sys/vm/dirty_ratio", "60");
  write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:   8000000 kB");
  EXPECT_EQ(find("transparent_huge_pages").value, "never");
  EXPECT_EQ(find("cpu_governor").health, Health::warning);
  EXPECT_EQ(find("clock_source").health, Health::warning);
  EXPECT_EQ(find("page_cache_dirty_limit").health, Health::warning);
  EXPECT_EQ(find("memory_available").value, "8.19 GB");
  EXPECT_EQ(find("memory_available").health, Health::good);
}

TEST_F(Doctor, CountsNodesAndIommuGroups) {
  fs::create_directories(root_ / "sys/devices/system/node/node0");
  fs::create_directories(root_ / "sys/devices/system/node/node1");
  fs::create_directories(root_ / "sys/kernel/iommu_groups/7");
  EXPECT_EQ(find("numa_nodes").value, "2");
  EXPECT_EQ(find("iommu").health, Health::good);
  fs::remove_all(root_ / "sys/kernel/iommu_groups");
  EXPECT_EQ(find("iommu").health, Health::missing);
}

TEST_F(Doctor, MeasuresTheDiskAndLeavesNothingBehind) {
  const Finding speed = find("disk_write_speed", std::chrono::milliseconds{20});
  EXPECT_NE(speed.health, Health::missing) << speed.value;
  EXPECT_THAT(speed.value, testing::HasSubstr("B/s"));
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(Doctor, ADirectoryThatIsNotThereIsAFindingToo) {
  const auto findings =
      examine_host({.root = root_, .data_directory = root_ / "gone", .disk_time = std::chrono::milliseconds{20}});
  EXPECT_EQ(findings.back().health, Health::missing);
  EXPECT_THAT(findings.back().value, testing::HasSubstr("No such file or directory"));
}
