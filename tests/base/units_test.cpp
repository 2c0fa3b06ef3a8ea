#include "base/units.h"

#include <gtest/gtest.h>

using namespace rodeo::base;
using namespace std::chrono_literals;

TEST(Units, SizesKnowBinaryAndDecimalPrefixes) {
  EXPECT_EQ(parse_size("2MiB").value(), 2u << 20);
  EXPECT_EQ(parse_size("5MB").value(), 5'000'000u);
  EXPECT_EQ(parse_size("512k").value(), 512'000u);
  EXPECT_EQ(parse_size("1 GiB").value(), 1u << 30);
  EXPECT_EQ(parse_size("4096").value(), 4096u);
  EXPECT_EQ(parse_size("1.5KiB").value(), 1536u);
}

TEST(Units, ASizeThatIsNoneSaysWhyAndHowToWriteIt) {
  const auto size = parse_size("5 MBit");
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, "base.bad_size");
  EXPECT_NE(size.error().what.find("the unit `MBit` is not known"), std::string::npos);
  EXPECT_FALSE(size.error().next.empty());
  for (const char* text : {"", "-1", "x", "1.5", "nan", "inf", "1e300", "--", "0x10"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Units, RatesAreHertzWithOrWithoutUnit) {
  EXPECT_DOUBLE_EQ(parse_rate_hz("100kHz").value(), 1e5);
  EXPECT_DOUBLE_EQ(parse_rate_hz("40000").value(), 4e4);
  EXPECT_DOUBLE_EQ(parse_rate_hz("1.5 MHz").value(), 1.5e6);
  EXPECT_FALSE(parse_rate_hz("100kB"));
}

TEST(Units, BitRatesAreBitsPerSecond) {
  EXPECT_DOUBLE_EQ(parse_bits_per_second("25Gbps").value(), 25e9);
  EXPECT_DOUBLE_EQ(parse_bits_per_second("100 Mbit/s").value(), 1e8);
  EXPECT_FALSE(parse_bits_per_second("25GB"));
}

TEST(Units, WithoutAUnitSizesAreBytesRatesHertzAndBitRatesBitsPerSecond) {
  EXPECT_EQ(parse_size("900000").value(), 900'000U);
  EXPECT_EQ(parse_rate_hz("12000").value(), 12e3);
  EXPECT_EQ(parse_bits_per_second("25e9").value(), 25e9);
  EXPECT_EQ(parse_duration("50").error().code, "base.bad_duration");
}

TEST(Units, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("5s").value(), 5s);
  EXPECT_EQ(parse_duration("1000us").value(), 1ms);
  EXPECT_EQ(parse_duration("10ms").value(), 10ms);
  EXPECT_EQ(parse_duration("1.5 min").value(), 90s);
  EXPECT_EQ(parse_duration("0").value(), 0s);
  ASSERT_FALSE(parse_duration("10"));
  EXPECT_NE(parse_duration("10").error().what.find("it has no unit"), std::string::npos);
}

TEST(Units, NumbersForReadingHaveThreeDigits) {
  EXPECT_EQ(format_quantity(19.2e6, "/s"), "19.2 M/s");
  EXPECT_EQ(format_quantity(768e6, "B/s"), "768 MB/s");
  EXPECT_EQ(format_quantity(12, "B"), "12 B");
  EXPECT_EQ(format_quantity(12, "/s"), "12/s");
  EXPECT_EQ(format_count(999'600), "1 M");
  EXPECT_EQ(format_quantity(1e300, "Hz"), "1e+285 PHz");
  EXPECT_EQ(format_count(0), "0");
}

TEST(Units, WholeBinarySizesReadAsSuch) {
  EXPECT_EQ(format_size(2u << 20), "2 MiB");
  EXPECT_EQ(format_size(1'500'000), "1.5 MB");
  EXPECT_EQ(format_size(0), "0 B");
}

TEST(Units, DurationsReadInTheUnitThatSuits) {
  EXPECT_EQ(format_duration(10ms), "10 ms");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(125s), "2 min 5 s");
  EXPECT_EQ(format_duration(3h + 5min), "3 h 5 min");
}
