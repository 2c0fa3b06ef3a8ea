// The kernel's data on a host: in the usual form, in odd forms, and as metrics.
#include "process/host_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

namespace rodeo::process {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kStat =
    "cpu  10 2 3 100 5 0 1 1 0 0\n"
    "cpu0 1 2 3 40 5 6 7 8 9 10\n"
    "cpu11 100 0 0 7 0 0 0 0\n"
    "intr 167393434 0 0 0\n"
    "ctxt 12\n";
constexpr const char* kDisks =
    "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    " 259       0 nvme0n1 10 0 80 4 20 0 160 9 0 33 13 0 0 0 0 0 0\n";
constexpr const char* kNetwork =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo: 100 10    0    0    0     0          0         0 100 10    0    0    0     0       0          0\n"
    "  eth0:3531649223   75836    1    2    0     0          0         0  4203631   45781    3    4    0     0       0      "
    "    0\n";

TEST(HostHealth, CoresHaveBusyAndIdleTime) {
  const auto cores = parse_core_times(kStat);
  ASSERT_EQ(cores.size(), 2U) << "the sum of all cores is not a core";
  EXPECT_EQ(cores[0].cpu, "0");
  EXPECT_EQ(cores[0].busy_ticks, 1U + 2 + 3 + 6 + 7 + 8) << "the time of users contains that of guests";
  EXPECT_EQ(cores[0].idle_ticks, 45U);
  EXPECT_EQ(cores[1].cpu, "11");
}

TEST(HostHealth, InterruptsAndContextSwitchesAreCounted) {
  EXPECT_EQ(parse_stat(kStat, "intr"), 167'393'434U);
  EXPECT_EQ(parse_stat(kStat, "ctxt"), 12U);
  EXPECT_EQ(parse_stat("intrx 3\nintr\n", "intr"), std::nullopt);
  EXPECT_EQ(parse_stat("intr x\n", "intr"), std::nullopt);
}

TEST(HostHealth, MemoryIsInBytes) {
  EXPECT_EQ(parse_memory("MemTotal:  16 kB\nMemAvailable:   8 kB\nHugePages_Total:  0\n", "MemAvailable"), 8192U);
  EXPECT_EQ(parse_memory("MemTotal:  16 kB\n", "MemAvailable"), std::nullopt);
  EXPECT_EQ(parse_memory("MemTotal:  x kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_memory("MemTotal:  16\n", "MemTotal"), std::nullopt) << "in unknown units";
}

TEST(HostHealth, DisksThatDoNothingAreLeftOut) {
  const auto disks = parse_disks(kDisks);
  ASSERT_EQ(disks.size(), 1U);
  EXPECT_EQ(disks[0].device, "nvme0n1");
  EXPECT_EQ(disks[0].read_bytes, 80U * 512);
  EXPECT_EQ(disks[0].written_bytes, 160U * 512);
  EXPECT_EQ(disks[0].busy_ms, 33U);
}

TEST(HostHealth, AnInterfaceMayStandRightBeforeItsNumbers) {
  const auto interfaces = parse_interfaces(kNetwork);
  ASSERT_EQ(interfaces.size(), 2U);
  EXPECT_EQ(interfaces[1].interface, "eth0");
  EXPECT_EQ(interfaces[1].received.bytes, 3'531'649'223U);
  EXPECT_EQ(interfaces[1].received.errors, 1U);
  EXPECT_EQ(interfaces[1].received.drops, 2U);
  EXPECT_EQ(interfaces[1].sent.packets, 45'781U);
  EXPECT_EQ(interfaces[1].sent.errors, 3U);
  EXPECT_EQ(interfaces[1].sent.drops, 4U);
}

TEST(HostHealth, OddTextsAreLeftOut) {
  for (const char* text :
       {"", "\n\n", "cpu0", "cpu0 1 2", "cpu0 1 2 3 4 5 6 7 x", "cpu0 1 2 3 4 5 6 7 99999999999999999999999",
        "cpu0 -1 2 3 4 5 6 7 8", ":", "eth0:", "eth0: 1 2 3", " a b: 1 2 3 4 5 6 7 8 9 10 11 12", "1 2 sda",
        "1 2 sda x 0 0 0 0 0 0 0 0 0", "MemTotal", "MemTotal:", "\xff\xfe\x80: kB"}) {
    EXPECT_THAT(parse_core_times(text), IsEmpty()) << text;
    EXPECT_THAT(parse_disks(text), IsEmpty()) << text;
    EXPECT_THAT(parse_interfaces(text), IsEmpty()) << text;
    EXPECT_EQ(parse_memory(text, "MemTotal"), std::nullopt) << text;
  }
}

TEST(HostHealth, EveryBeginningOfATextIsRead) {
  for (const std::string whole : {kStat, kDisks, kNetwork}) {
    for (std::size_t end = 0; end < whole.size(); ++end) {
      const std::string_view text = std::string_view(whole).substr(0, end);
      EXPECT_LE(parse_core_times(text).size(), 2U);
      EXPECT_LE(parse_disks(text).size(), 1U);
      EXPECT_LE(parse_interfaces(text).size(), 2U);
    }
  }
}

/// A file tree in place of /.
class HostTree : public ::testing::Test {
 protected:
  ~HostTree() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::string metrics() const { return host_metrics(std::vector<std::string>{root_, "/no/such/directory"}, root_); }

  fs::path root_ = fs::temp_directory_path() / ("rodeo-host-" + std::to_string(::getpid()));
};

TEST_F(HostTree, SensorsHaveNamesOfTheirOwn) {
  write("sys/class/hwmon/hwmon0/name", "coretemp\n");
  write("sys/class/hwmon/hwmon0/temp1_input", "45500\n");
  write("sys/class/hwmon/hwmon0/temp1_label", "Core 0\n");
  write("sys/class/hwmon/hwmon0/temp2_input", "nothing\n");
  write("sys/class/hwmon/hwmon0/fan1_input", "1200\n");
  write("sys/class/hwmon/hwmon1/temp1_input", "-3000\n");
  write("sys/class/thermal/thermal_zone0/temp", "40000\n");
  const auto sensors = temperatures(root_);
  ASSERT_EQ(sensors.size(), 2U);
  EXPECT_EQ(sensors[0].sensor, "coretemp Core 0 (hwmon0/temp1)");
  EXPECT_DOUBLE_EQ(sensors[0].celsius, 45.5);
  EXPECT_EQ(sensors[1].sensor, "hwmon1 sensor (hwmon1/temp1)");
  EXPECT_DOUBLE_EQ(sensors[1].celsius, -3);
  fs::remove_all(root_ / "sys/class/hwmon");
  ASSERT_EQ(temperatures(root_).size(), 1U);
  EXPECT_EQ(temperatures(root_)[0].sensor, "sensor (thermal_zone0)");
}

TEST_F(HostTree, WhatIsNotThereIsNoMetric) {
  fs::create_directories(root_);
  const std::string text = metrics();
  EXPECT_THAT(text, HasSubstr("rodeo_host_directory_free_bytes{directory=\"" + root_.string() + "\"} "));
  for (const char* name : {"cpu", "memory", "huge", "disk", "network", "temperature", "/no/such"}) {
    EXPECT_THAT(text, Not(HasSubstr(std::string("rodeo_host_") + name))) << name;
  }
  EXPECT_THAT(text, Not(HasSubstr("/no/such")));
}

TEST_F(HostTree, EverySampleHasHelpAndTypeAndIsThereOnce) {
  write("proc/stat", kStat);
  write("proc/meminfo", "MemTotal: 16 kB\nMemAvailable: 8 kB\n");
  write("proc/diskstats", kDisks);
  write("proc/net/dev", kNetwork);
  write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12\n");
  write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n");
  write("sys/class/hwmon/hwmon0/temp1_input", "45500\n");
  const std::string text = metrics();
  std::istringstream lines(text);
  std::string described;
  std::set<std::string> series;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) described = line.substr(7, line.find(' ', 7) - 7);
    if (line.starts_with('#')) continue;
    EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), described);
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  for (const char* sample : {"rodeo_host_memory_available_bytes 8192\n", "rodeo_host_huge_pages_free{size=\"2048kB\"} 3\n",
                             "rodeo_host_disk_busy_seconds_total{device=\"nvme0n1\"} 0.033\n",
                             "rodeo_host_network_received_drops_total{interface=\"eth0\"} 2\n",
                             "rodeo_host_network_sent_errors_total{interface=\"eth0\"} 3\n",
                             "rodeo_host_temperature_celsius{sensor=\"hwmon0 sensor"})
    EXPECT_THAT(text, HasSubstr(sample));
  EXPECT_EQ(series.size(), 2 * 2 + 2 + 2 + 2 + 3 + 2 + 2 * 8 + 1U);
}

}  // namespace
}  // namespace rodeo::process
