#include "network/formula/closed_forms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "network/formula/wire.h"

namespace rodeo::network {
namespace {

ClosedForms at(double megabytes, double kilohertz) {
  return closed_forms({.event_bytes = megabytes * 1e6, .event_rate_hz = kilohertz * 1e3}).value();
}

TEST(ClosedForms, GiveThePublishedFormulaAsPrinted) {
  // Calculated by hand from section 3.3 of the paper, with its I = 800 and O = 25 Gb/s.
  struct Row {
    double size, rate;
    std::uint64_t events;
    double paper, exact;
    std::uint64_t live;
  };
  for (const Row& row : {Row{5, 1.8, 4, 8.96, 9.32, 3}, Row{5, 6, 11, 24.64, 25.00, 10}, Row{5, 12, 21, 47.03, 47.50, 19},
                         Row{5, 14.2, 24, 55.51, 55.73, 23}, Row{5, 19, 32, 73.42, 73.77, 30},
                         Row{2.5, 12, 11, 12.32, 12.50, 10}, Row{8, 12, 32, 118.83, 119.22, 30},
                         Row{1, 1, 2, -1.19, 0.97, 1}, Row{1, 1.8, 2, 0.20, 0.97, 1}, Row{5, 1, 3, 5.16, 6.56, 2}}) {
    const ClosedForms forms = at(row.size, row.rate);
    EXPECT_EQ(forms.paper_events, row.events) << row.size << " MB at " << row.rate << " kHz";
    EXPECT_NEAR(forms.paper_bytes * 1e-6, row.paper, 0.006) << row.size << " MB at " << row.rate << " kHz";
    EXPECT_NEAR(forms.exact_bytes.value() * 1e-6, row.exact, 0.006) << row.size << " MB at " << row.rate << " kHz";
    EXPECT_EQ(forms.overlapping_events, row.live) << row.size << " MB at " << row.rate << " kHz";
    EXPECT_TRUE(forms.valid) << forms.why;
  }
}

TEST(ClosedForms, TheBoundIsThatOfEventsOneAfterAnother) {
  EXPECT_NEAR(at(5, 12).bound_bytes.value(), 77.5e6, 1);
  EXPECT_NEAR(at(5, 1).bound_bytes.value(), 77.5e6, 1);  // the bound does not depend on the rate
  // I/O = 2.5, all events at once: two are live when the third has arrived.
  const auto broken =
      closed_forms({.event_bytes = 1e6, .event_rate_hz = 1, .input_bps = 25e9, .output_bps = 10e9, .ports = 3});
  EXPECT_NEAR(broken->bound_bytes.value(), (2 - 2 * 3 / 5.0) * 1e6, 1);
}

TEST(ClosedForms, FewerPortsThanTheUplinkFillsHaveNoBound) {
  const auto forms = closed_forms({.ports = 31});
  EXPECT_FALSE(forms->bound_bytes.has_value());
  EXPECT_TRUE(forms->exact_bytes.has_value());
}

TEST(ClosedForms, OverloadHasNoLargestOccupancy) {
  const auto uplink = closed_forms({.event_rate_hz = 21e3});
  EXPECT_FALSE(uplink->valid);
  EXPECT_FALSE(uplink->exact_bytes.has_value());
  EXPECT_NE(uplink->why.find("uplink and 32 ports carry 800"), std::string::npos) << uplink->why;
  EXPECT_TRUE(uplink->bound_bytes.has_value());  // the ports drain what the uplink brings
  for (const Condition& condition : uplink->conditions) {
    EXPECT_EQ(condition.says.find("0 are live"), std::string::npos) << condition.says;
  }
  const auto ports = closed_forms({.event_rate_hz = 12e3, .ports = 10});
  EXPECT_FALSE(ports->valid);
  EXPECT_NE(ports->why.find("10 ports carry 250"), std::string::npos) << ports->why;
  EXPECT_FALSE(ports->bound_bytes.has_value());
  // More ports than the uplink can feed: only the uplink is overloaded.
  const auto narrow = closed_forms({.event_rate_hz = 21e3, .ports = 40});
  EXPECT_NE(narrow->why.find("the uplink carries 800"), std::string::npos) << narrow->why;
  // Overload is checked before queueing.
  const auto flat = closed_forms({.event_bytes = 5e6, .event_rate_hz = 1e3, .input_bps = 25e9, .ports = 2});
  EXPECT_FALSE(flat->exact_bytes.has_value());
  EXPECT_NE(flat->why.find("overload"), std::string::npos) << flat->why;
}

TEST(ClosedForms, ANegativeResultIsPrintedAndNotBelieved) {
  const ClosedForms forms = at(1, 1);
  EXPECT_LT(forms.paper_bytes, 0);
  EXPECT_FALSE(forms.paper_valid);
  EXPECT_TRUE(forms.valid);
  EXPECT_NE(forms.why.find("negative"), std::string::npos);
}

TEST(ClosedForms, NothingQueuesWhereAPortIsAsFastAsTheUplink) {
  const auto forms = closed_forms({.event_bytes = 1e3, .event_rate_hz = 1, .input_bps = 25e9, .ports = 1});
  EXPECT_FALSE(forms->valid);
  EXPECT_EQ(forms->exact_bytes.value(), 0);
  EXPECT_EQ(forms->bound_bytes.value(), 0);
}

TEST(ClosedForms, ZeroOfAnythingIsAnError) {
  for (const FormulaInput& input :
       {FormulaInput{.event_bytes = 0}, FormulaInput{.event_rate_hz = 0}, FormulaInput{.input_bps = -1},
        FormulaInput{.output_bps = NAN}, FormulaInput{.ports = 0}}) {
    EXPECT_EQ(closed_forms(input).error().code, "network.zero");
  }
}

TEST(HighestRate, IsWhereTheExactFormMeetsTheBuffer) {
  const FormulaInput input{};
  const double rate = highest_rate_hz(input, 27e6).value().value();
  EXPECT_NEAR(closed_forms({.event_rate_hz = rate})->exact_bytes.value(), 27e6, 1);
  EXPECT_FALSE(highest_rate_hz(input, 4.8e6)->has_value());           // one event needs 4.84 MB
  EXPECT_NEAR(highest_rate_hz(input, 1e9).value().value(), 20e3, 1);  // the limit of the uplink
}

TEST(WireSize, CountsTheHeadersOfEveryPacket) {
  EXPECT_NEAR(wire_size(5'000'000, 1500)->overhead(), 1514.0 / 1448, 1e-4);
  EXPECT_NEAR(wire_size(5'000'000, 9000)->overhead(), 9014.0 / 8948, 1e-4);
  EXPECT_EQ(wire_size(1448, 1500)->wire_bytes, 1514u);
  EXPECT_EQ(wire_size(1449, 1500)->packets, 2u);
  // Each of 48 answers ends with a partly filled packet.
  const WireSize fragments = wire_size(5'000'000, 1500, 48).value();
  EXPECT_EQ(fragments.packets, 48u * 72);
  EXPECT_EQ(fragments.wire_bytes, 5'000'000 + fragments.packets * 66);
}

TEST(WireSize, RefusesWhatCannotBe) {
  EXPECT_EQ(wire_size(5'000'000, 60).error().code, "network.bad_mtu");
  EXPECT_EQ(wire_size(5'000'000, 70'000).error().code, "network.bad_mtu");
  EXPECT_EQ(wire_size(0, 1500).error().code, "network.zero");
  EXPECT_EQ(wire_size(10, 1500, 11).error().code, "network.zero");
}

}  // namespace
}  // namespace rodeo::network
